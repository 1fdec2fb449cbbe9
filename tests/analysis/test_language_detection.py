"""Language detection, and user-defined stop words."""

import pytest

import klsa_search as klsa
from klsa_search.analysis import Analyzer
from klsa_search.analysis.language_detection import (
    DetectedLanguage,
    detect_language,
    detect_languages,
)
from klsa_search.analysis.languages import language_name
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.core.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.indexing.build import plan
from klsa_search.indexing.rewrite import refit
from klsa_search.indexing.text_sample import TextSample
from klsa_search.storage.manifest import LanguageEntry

TEXTS = {
    "dutch": "De koelvloeistof lekt uit de pomp zodra de motor warm wordt.",
    "english": "The coolant leaks from the pump as soon as the engine is warm.",
    "finnish": "Jäähdytysneste vuotaa pumpusta heti kun moottori lämpenee.",
    "french": "Le liquide de refroidissement fuit de la pompe dès que le moteur est chaud.",
    "german": "Das Kühlmittel läuft aus der Pumpe, sobald der Motor warm ist.",
    "russian": "Охлаждающая жидкость вытекает из насоса, как только двигатель нагревается.",
    "spanish": "El líquido refrigerante gotea de la bomba cuando el motor está caliente.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_found(language):
    assert detect_language([TEXTS[language]] * 2 + [""]) == (language, 1.0)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("학교에서 공부했다", "korean"),
        ("API를 호출하면 오류가 반환됩니다 return code", "korean"),
        ("犬が公園を走る。番犬を飼う", "japanese"),
        ("コンピュータソフトウェア", "japanese"),
        ("全文檢索的方法與應用", "chinese"),
        ("שלום לכל המורים", "hebrew"),
        ("Το κλειδί της αντλίας", "greek"),
        ("ภาษาไทยไม่มีช่องว่าง", "thai"),
        ("Համակարգիչը չի միանում", "armenian"),
        ("სკოლაში ვსწავლობდით", "none"),
        ("Dælan lekur kælivökva þegar vélin er heit. Hún gengur lengi á kvöldin." * 2, "none"),
        ("The pump", "auto"),
        ("school 학교", "auto"),
        ("3.14 ... 2024-02", "auto"),
        ("", "auto"),
    ],
)
def test_the_script_decides_the_language_of_short_texts(text, language):
    assert detect_language([text]).language == language


def test_most_of_the_text_decides():
    mixed = [TEXTS["german"], TEXTS["german"] * 5, TEXTS["english"] * 4]
    found = detect_language(mixed)
    assert found.language == "german"
    assert 0.5 < found.share < 0.7
    assert detect_language(mixed) == found
    titles = [word for text in (TEXTS["german"], TEXTS["german"]) for word in text.split()]
    assert detect_language(titles).language == "german"


def test_a_code_is_the_language_of_that_name():
    german = Analyzer(AnalysisSettings(language="german"))
    assert Analyzer(AnalysisSettings(language="de")) == german
    assert Analyzer(AnalysisSettings(language="DE")).terms("Pumpen") == german.terms("Pumpen")
    assert language_name("xx") == "xx"
    with pytest.raises(SettingsError, match="language 'xx'"):
        Analyzer(AnalysisSettings(language="xx"))


def test_an_undetected_language_is_read_as_english():
    assert Analyzer(AnalysisSettings(language="auto")) == Analyzer(
        AnalysisSettings(language="english")
    )


def test_extra_stop_words_are_left_out_with_those_of_the_list():
    analyzer = Analyzer(AnalysisSettings(extra_stop_words=("Pump", "coolant")))
    assert analyzer.terms("the PUMP and its coolant leak") == ["it", "leak"]


@pytest.mark.parametrize("source", [iter, list])
def test_an_index_has_the_language_of_its_documents(tmp_path, source):
    records = [{"id": str(n), "text": TEXTS["german"]} for n in range(3)]
    index = klsa.build(source(records), name="it", home=tmp_path)
    assert (len(index), index.settings.language) == (3, "german")
    assert index.manifest.detected == [LanguageEntry(language="german", share=1.0)]
    assert plan(records).size.sampled == 3
    refitted = refit(index.path.parent)
    assert refitted.manifest.detected == index.manifest.detected
    assert refit(refitted, language="english").manifest.detected == []
    index = klsa.build(records, name="it", home=tmp_path, language="de", replace=True)
    assert (index.settings.language, index.manifest.detected) == ("german", [])


def test_untranslated_documents_at_the_beginning_do_not_decide(tmp_path):
    records = [
        {"id": str(n), "text": TEXTS["english" if n < 700 else "german"]} for n in range(1_833)
    ]
    named = klsa.build(records, name="named", home=tmp_path, language="german,english")
    found = klsa.build(iter(records), name="found", home=tmp_path)
    assert [entry.language for entry in found.manifest.detected] == ["german", "english"]
    assert 0.55 < found.manifest.detected[0].share < 0.7
    assert found.manifest.fingerprint == named.manifest.fingerprint
    assert found.document("699").text == TEXTS["english"]
    for query in ("Pumpen", "engines"):
        assert [hit.score for hit in found.search(query)] == [
            hit.score for hit in named.search(query)
        ]


def test_untranslated_documents_do_not_decide_in_partitions(tmp_path):
    records = (
        {"id": str(n), "text": TEXTS["english" if n < 700 else "german"]} for n in range(1_833)
    )
    parts = klsa.build(records, name="parts", home=tmp_path, partitions=2, workers=1)
    assert parts.settings.language == "german,english"


def test_words_are_read_in_the_languages_of_all_documents(tmp_path):
    """The guess before the first pass takes every second of these documents."""
    records = [{"id": str(n), "text": TEXTS["german" if n % 2 else "english"]} for n in range(64)]
    detected = klsa.build(records, name="detected", home=tmp_path)
    language = detected.settings.language
    assert set(language.split(",")) == {"english", "german"}
    named = klsa.build(records, name="named", home=tmp_path, language=language)
    for query in TEXTS["german"].split():
        hits = [(hit.id, hit.score) for hit in named.search(query)]
        assert [(hit.id, hit.score) for hit in detected.search(query)] == hits, query


def test_an_index_begun_empty_detects_its_language_by_a_refit(tmp_path):
    index = klsa.build([], name="it", home=tmp_path)
    assert (index.settings.language, index.manifest.detected) == ("auto", [])
    assert index.analyzer.terms("pumps") == ["pump"]
    index.write([Document(id=str(n), text=TEXTS["german"]) for n in range(3)])
    refitted = refit(index.path.parent)
    assert refitted.manifest.detected == [LanguageEntry(language="german", share=1.0)]


def test_the_sample_spans_the_collection_and_depends_on_it_alone():
    documents = [Document(id=str(n), text=f"number {n}") for n in range(10_000)]
    one, other = TextSample(Settings()), TextSample(Settings())
    one.add(documents)
    for document in documents:
        other.add([document])
    assert one.texts == other.texts
    assert 256 <= len(one.texts) <= 512
    assert one.texts[0] == "\nnumber 0"
    assert int(one.texts[-1].split()[1]) > 9_900


def test_repeated_words_that_are_few_tell_nothing():
    assert detect_language(["word01 word02 word03"] * 40) == ("auto", 0.0)


def test_a_collection_has_a_language_that_half_of_the_text_has():
    assert detect_languages([*TEXTS.values()]) == [DetectedLanguage("auto", 0.0)]
    most = [TEXTS["german"]] * 6 + [*TEXTS.values()]
    assert [language for language, _ in detect_languages(most)] == ["german"]
