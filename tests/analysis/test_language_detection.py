"""Language detection, and user-defined stop words."""

from __future__ import annotations

import sys

import pytest

import klsa_search as klsa
from klsa_search.analysis import Analyzer
from klsa_search.analysis.languages import detect_language, language_name
from klsa_search.core.config import AnalysisSettings
from klsa_search.errors import MissingExtra, SettingsError
from klsa_search.indexing.plan import plan

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
    assert detect_language([TEXTS[language], ""]) == language


def test_most_of_the_text_decides_and_nothing_is_no_language():
    assert detect_language([TEXTS["german"], TEXTS["german"] * 3, TEXTS["english"] * 2]) == "german"
    assert detect_language([]) == detect_language([" "]) == "none"


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(MissingExtra, match=r"klsa-search\[files\]"):
        detect_language(["text"])


def test_a_code_is_the_language_of_that_name():
    german = Analyzer(AnalysisSettings(language="german"))
    assert Analyzer(AnalysisSettings(language="de")) == german
    assert Analyzer(AnalysisSettings(language="DE")).terms("Pumpen") == german.terms("Pumpen")
    assert language_name("xx") == "xx"
    for language, reason in (("xx", "language 'xx'"), ("auto", "found by building")):
        with pytest.raises(SettingsError, match=reason):
            Analyzer(AnalysisSettings(language=language))


def test_own_stop_words_are_left_out_besides_those_of_the_list():
    analyzer = Analyzer(AnalysisSettings(own_stop_words=("Pump", "coolant")))
    assert analyzer.terms("the PUMP and its coolant leak") == ["it", "leak"]


@pytest.mark.parametrize("source", [iter, list])
def test_an_index_has_the_language_of_its_documents(tmp_path, source):
    records = [{"id": str(n), "text": TEXTS["german"]} for n in range(3)]
    index = klsa.build(source(records), name="it", home=tmp_path, language="auto")
    assert (len(index), index.settings.language) == (3, "german")
    assert plan(records, language="auto").sampled == 3
    index = klsa.build(records, name="it", home=tmp_path, language="de", replace=True)
    assert index.settings.language == "german"
