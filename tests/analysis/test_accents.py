"""Folding of accents by language: each way of typing a word gives the same term."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis import Analyzer
from klsa_search.analysis.languages import languages
from klsa_search.analysis.unicode import ACCENTS, fold_accents
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.core.config import PRESETS


def analyzer(language, **settings):
    return Analyzer(AnalysisSettings(language=language, **settings))


@pytest.mark.parametrize(
    ("language", "written", "bare"),
    [
        ("english", "naïve résumés café", "naive resumes cafe"),
        ("french", "mémoire créées première activités où", "memoire creees premiere activites ou"),
        ("spanish", "búsquedas pingüinos será", "busquedas pinguinos sera"),
        ("portuguese", "manutenções não até órgãos", "manutencoes nao ate orgaos"),
        ("italian", "qualità perché città", "qualita perche citta"),
        ("german", "Häuser Übung schön", "Hauser Ubung schon"),
        ("catalan", "acció opcions àlies", "accio opcions alies"),
        ("greek", "μνήμη αρχείο", "μνημη αρχειο"),
    ],
)
def test_typed_with_and_without(language, written, bare):
    found = analyzer(language)
    assert found.terms(written) == found.terms(bare)
    kept = analyzer(language, fold_accents=False)
    # The stemmers of German and Greek fold by themselves.
    assert (kept.terms(written) == kept.terms(bare)) == (language in ("german", "greek"))


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("spanish", "año", "ano"),
        ("galician", "año", "ano"),
        ("swedish", "för", "for"),
        ("finnish", "näin", "nain"),
        ("norwegian", "på", "pa"),
        ("polish", "łaska", "laska"),
        ("none", "é", "e"),
    ],
)
def test_letters_of_their_own_stay_unless_all_are_to_go(language, one, other):
    found = analyzer(language, stemmer="none")
    assert found.terms(one) != found.terms(other)
    folding = analyzer(language, stemmer="none", fold_accents=True)
    assert folding.terms("año för é på") == ["ano", "for", "e", "pa"]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("french", "utilisé utilisée utilisées utilisés utiliser utilisèrent"),
        ("french", "premier première premières"),
        ("french", "activité activités"),
        ("portuguese", "aplicação aplicações aplicar"),
        ("catalan", "acció accions"),
    ],
)
def test_forms_that_the_stemmer_knows_by_their_accents_stay_one(language, words):
    assert len(set(analyzer(language).terms(words))) == 1


WORDS = st.text(st.sampled_from("aeioucnmstrlãçéèñôüõà"), max_size=9)


@given(st.sampled_from(sorted(ACCENTS)), WORDS)
def test_one_term_however_it_is_typed(language, word):
    kept = ACCENTS[language].kept
    bare = word if set(word) & set(kept) else fold_accents(word)
    found = analyzer(language)
    assert found.term(bare) == found.term(word)
    assert set(found.term(word)) <= set("abcdefghijklmnopqrstuvwxyz" + kept)


def test_only_languages_that_there_are():
    assert ACCENTS.keys() <= set(languages())


def test_the_paper_never_changes():
    published = Analyzer(AnalysisSettings(fold_accents=PRESETS["paper"]["fold_accents"]))
    assert published.terms("résumé") == ["résumé"]
