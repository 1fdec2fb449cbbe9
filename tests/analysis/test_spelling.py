"""British and American spellings of English words."""

import pytest

from klsa_search.analysis import Analyzer
from klsa_search.analysis.languages import common_spelling
from klsa_search.core.build_settings import AnalysisSettings

PAIRS = """
normalise normalize; normalisation normalization; organised organized; tokeniser tokenizer
randomising randomizing; relativise relativize; criticise criticize; memoised memoized
aggrandisement aggrandizement; analyse analyze; analyser analyzer; catalysed catalyzed
colour color; colours colors; colouring coloring; behavioural behavioral; favourite favorite
neighbourhood neighborhood; armoury armory; odour odor; centre center; metres meters
centred centered; centring centering; theatre theater
defence defense; licences licenses; practise practice; practising practicing
anaemia anemia; haemoglobin hemoglobin; paediatric pediatric; archaeology archeology
oedema edema; oestrogen estrogen; foetal fetal; diarrhoea diarrhea; manoeuvre maneuver
manoeuvring maneuvering; sulphur sulfur; programme program
"""
UNCHANGED = """
promise precise precision concise exercise exercised franchise rise arise raise noise cruise revise
supervise otherwise surprise enterprises expertise comprise advise advertise advertisement practice
four hour hours tour pour our your source resource course discourse does shoe poet aerial hatred
timbre crises paradise size prize genre entire acre vogue rogue sentence
"""


@pytest.mark.parametrize("pair", [pair.strip() for pair in PAIRS.replace("\n", ";").split(";")])
def test_both_spellings_have_one_term(pair):
    terms = Analyzer().terms(pair)
    assert len(set(terms)) <= 1, terms


def test_words_of_one_spelling_keep_it():
    changed = [word for word in UNCHANGED.split() if common_spelling(word) != word]
    assert changed == []
    assert common_spelling("analyse") == "analyse"  # the stem of analyses


def test_only_stemmed_english_is_changed():
    for settings in ({"language": "german"}, {"language": "none"}, {"stemmer": "none"}):
        terms = Analyzer(AnalysisSettings(**settings)).terms("colour normalise")
        assert terms[0].startswith("colour"), settings


def test_either_spelling_finds_the_other(index_of):
    texts = ["The behavior of colors", "Normalisation of behaviour", "a valve"]
    index = index_of(texts, ranker="bm25")
    for query in ("behaviour", "behavior", "behaviou*", "behavio*"):
        assert {hit.id for hit in index.search(query)} == {"0", "1"}, query
    assert [hit.id for hit in index.search("colours")] == ["0"]
    assert [hit.id for hit in index.search("normalize")] == ["1"]
    (hit,) = index.search("colour", highlight=True)
    assert "<mark>colors</mark>" in hit.highlight["snippet"].html
