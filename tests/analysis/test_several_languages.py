"""An index of several languages: each document has the stems and stop words of its own."""

from dataclasses import replace

import pytest

import klsa_search as klsa
from klsa_search.analysis import Analyzer
from klsa_search.analysis.language_detection import detect_languages, language_among
from klsa_search.analysis.languages import languages_of, stated_language
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.errors import SettingsError
from klsa_search.indexing.rewrite import refit
from klsa_search.indexing.verify import verify

GERMAN = (
    "Der Drucker im Büro druckt nicht, obwohl die Kabel richtig angeschlossen sind.",
    "Die Pumpen verlieren Kühlmittel, sobald der Motor warm ist.",
    "Das Passwort wurde zurückgesetzt, aber die Anmeldung am Server schlägt fehl.",
    "Seit der letzten Aktualisierung stürzt die Anwendung beim Speichern von Dateien ab.",
)
ENGLISH = (
    "The printers in the office are not printing although the cables are connected.",
    "The engines lose coolant as soon as they are warm, and then they stop.",
    "The password was reset, but logging in to the server fails with an error.",
    "Since the last update the application crashes when people are saving files.",
)
RUSSIAN = ("Насосы протекают, как только двигатель нагревается.",)


def tickets(*languages):
    return [
        {"id": f"{name}{number}", "text": text}
        for number in range(4)
        for name, texts in languages
        for text in texts[number : number + 1]
    ]


MIXED = tickets(("de", GERMAN), ("en", ENGLISH))


@pytest.fixture(scope="module", params=[{}, {"partitions": 2, "workers": 1}], ids=str)
def index(request, index_of):
    return index_of(MIXED, **request.param)


def found(index, query, **options):
    return {hit.id for hit in index.search(query, **options)}


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("Pumpe", {"de1"}),
        ("Datei", {"de3"}),
        ("druckte", {"de0"}),
        ("printer", {"en0"}),
        ("engine", {"en1"}),
        ("crashing", {"en3"}),
        ("servers", {"de2", "en2"}),
        ('"verlieren Kühlmittel"', {"de1"}),
        ('"loses coolant"', {"en1"}),
        ('"are connected"', {"en0"}),
        ("Server -Passwörter", {"en2"}),
        ("+engines warm", {"en1"}),
        ("druckt*", {"de0"}),
        ("engines AND coolant", {"en1"}),
    ],
)
def test_words_are_found_by_the_forms_of_their_language(index, query, ids):
    assert found(index, query) == ids


def test_the_languages_are_reported(index):
    assert languages_of(index.settings.language) == index.analyzer.languages
    assert {entry.language for entry in index.manifest.detected} == {"german", "english"}
    assert sum(entry.share for entry in index.manifest.detected) == pytest.approx(1, abs=0.02)


def test_all_words_may_be_of_different_languages(index):
    assert found(index, "Servers Anmeldungen", match="all") == {"de2"}
    assert found(index, "printers cable", match="all") == {"en0"}


def test_stop_words_of_one_language_are_no_words_of_a_query(index):
    assert found(index, "the coolants in an") == {"en1"}
    assert found(index, "and then") == {"en1"}


def test_function_words_tell_the_language_of_a_query(index):
    for query, first in (
        ("was ist mit dem Drucker", "de0"),
        ("what is with the printer", "en0"),
        ("wie kann man Dateien speichern", "de3"),
        ("how can one save a file", "en3"),
    ):
        assert index.search(query)[0].id == first, query


def test_forms_of_both_languages_are_highlighted(index):
    (hit,) = index.search("Pumpe", highlight=True)
    assert "<mark>Pumpen</mark>" in hit.highlight["snippet"].html
    (hit,) = index.search("engine", highlight=True)
    assert "<mark>engines</mark>" in hit.highlight["snippet"].html


def test_misspelt_words_of_both_languages_are_corrected(index):
    said = index.search("Kühlmitel").interpretation
    assert said.corrections == {"Kühlmitel": "Kühlmittel"}
    assert index.search("pasword").interpretation.corrections["pasword"].casefold() == "password"


def test_later_documents_are_read_in_their_language(tmp_path):
    index = klsa.build(MIXED, name="mixed", home=tmp_path)
    index.write([
        Document(id="new-de", text="Neue Pressen wurden bestellt und werden morgen geliefert."),
        Document(id="new-en", text="New lathes were ordered and will be delivered tomorrow."),
    ])  # fmt: skip
    assert found(index, "Presse") == {"new-de"}
    assert found(index, "lathe") == {"new-en"}
    verify(index.path.parent)
    refitted = refit(index.path.parent)
    assert refitted.settings.language == index.settings.language
    assert found(refitted, "Presse") == {"new-de"}
    verify(refitted.path.parent)


def test_synonyms_and_rules_hold_in_each_language(tmp_path):
    index = klsa.build(MIXED, name="mixed", home=tmp_path)
    index.set_synonyms({"Pumpe": ["engine"], "machines": ["printer"]})
    assert found(index, "Pumpen") == {"de1", "en1"}
    assert found(index, "machine") == {"en0"}


def test_a_field_gives_the_language(tmp_path):
    # Without the field nothing tells: the texts are too short.
    records = [
        {"id": "1", "title": "Pumpen", "lang": "de-AT"},
        {"id": "2", "title": "Engines", "lang": "English"},
        {"id": "3", "title": "Насосы", "lang": "ru"},
        {"id": "4", "title": "Kabeln"},
    ]
    index = klsa.build(records, name="stated", home=tmp_path, language_field="lang")
    assert set(index.analyzer.languages) == {"german", "english", "russian"}
    assert [found(index, word) for word in ("Pumpe", "engine", "насос")] == [{"1"}, {"2"}, {"3"}]
    index.patch("1", {"lang": "en"})
    assert found(index, "Pumpe", spelling="off") == set()
    assert found(index, "Pumpen") == {"1"}


def test_a_field_that_no_document_has_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="'tongue'"):
        klsa.build(MIXED, name="field", home=tmp_path, language_field="tongue")


def test_named_languages_hold_from_the_beginning(tmp_path):
    index = klsa.build([], name="empty", home=tmp_path, language="de,en")
    assert (index.settings.language, index.manifest.detected) == ("german,english", [])
    index.write([Document(**record) for record in MIXED])
    assert found(index, "Pumpe") == {"de1"}
    assert found(index, "engine") == {"en1"}
    same = klsa.build([], name="same", home=tmp_path, language=["german", "en"])
    assert same.settings.language == index.settings.language


def test_one_document_of_another_language_changes_nothing(tmp_path):
    records = tickets(("en", ENGLISH)) + tickets(("de", GERMAN[:1]))
    index = klsa.build(records, name="one", home=tmp_path)
    assert index.settings.language == "english"
    named = klsa.build(records, name="named", home=tmp_path, language="english")
    assert index.manifest.fingerprint == named.manifest.fingerprint


def test_languages_of_other_scripts_need_no_model(monkeypatch):
    def refuse():
        raise AssertionError("the model is loaded")

    monkeypatch.setattr("klsa_search.analysis.language_detection._identifier", refuse)
    names = ("english", "russian", "japanese")
    assert language_among("The pump", names) == "english"
    assert language_among(RUSSIAN[0], names) == "russian"
    assert language_among("ポンプが漏れる", names) == "japanese"
    assert language_among("42", names) == "english"
    assert language_among("학교", names) == "english"


def test_detection_of_several_languages():
    assert {one.language for one in detect_languages(GERMAN + ENGLISH)} == {"german", "english"}
    titles = [text[:30] for text in GERMAN * 5 + ENGLISH * 5]
    assert {one.language for one in detect_languages(titles)} == {"german", "english"}
    assert [one.language for one in detect_languages(ENGLISH)] == ["english"]
    assert [one.language for one in detect_languages(["pump"])] == ["auto"]


@pytest.mark.parametrize(
    ("text", "name"),
    [("de", "german"), ("de_DE", "german"), ("French", "french"), ("zh-Hans", "chinese"), ("", "")],
)
def test_fields_name_languages_in_several_ways(text, name):
    assert stated_language(text) == name


def test_stop_words_have_the_same_codes_in_all_languages():
    both = Analyzer(AnalysisSettings(language="de,fi,en", stop_words="long"))
    for word in ("aber", "and", "für", "että"):
        codes = {both.in_language(name).term_of.stop_code(word) for name in both.languages}
        assert codes == {both.term_of.stop_code(word)} != {0}, word


def test_passages_are_read_in_the_language_of_their_document(tmp_path):
    records = [{**record, "text": "\n\n".join([record["text"]] * 40)} for record in MIXED]
    index = klsa.build(records, name="long", home=tmp_path, passages=100)
    (hit, *_) = index.search("Pumpe", group="passage")
    assert hit.id.startswith("de1")
    verify(index.path.parent)


def test_written_documents_keep_their_language(tmp_path):
    index = klsa.build(MIXED, name="mixed", home=tmp_path)
    index.write([replace(Document(**MIXED[2]), id="copy")])
    index.close()
    with klsa.open_index(tmp_path / "mixed") as again:
        assert found(again, "Pumpe") == {"de1", "copy"}
