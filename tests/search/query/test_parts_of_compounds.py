"""Words that documents have in compounds only are found there."""

import pytest

from klsa_search import build

GERMAN = {
    "question": "Ein Fragezeichen steht am Ende",
    "marks": "Satzzeichen und Anführungszeichen",
    "house": "Das Krankenhaus liegt am Wald",
    "forest": "Der Wald ist kühl",
    "edge": "Waldränder sind hell",
    "staff": "Mitarbeiter schlafen",
}


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.slow), 2])
def index(request, tmp_path_factory):
    documents = [{"id": name, "text": text} for name, text in GERMAN.items()]
    home = tmp_path_factory.mktemp("home")
    options = {"language": "german", "ranker": "bm25", "partitions": request.param}
    with build(documents, name="german", home=home, workers=1, **options) as opened:
        yield opened


def test_words_are_found_in_compounds(index):
    for query, expected in (
        ("Frage", {"question"}),
        ("Zeichen", {"question", "marks"}),
        ("Haus", {"house"}),
        ("Haus Wald", {"house", "forest"}),
        ("Wald", {"house", "forest"}),  # a word of documents stands for itself
        ("ken", set()),  # neither beginning nor end
        ("mit Wald", {"house", "forest"}),  # a function word
        ("Xyz", set()),
    ):
        assert {hit.id for hit in index.search(query)} == expected, query


def test_operators_apply_to_words_in_compounds(index):
    for query, expected in (
        ("+Haus", {"house"}),
        ("Haus AND Wald", {"house"}),
        ("Haus AND Ende", set()),
        ("Frage OR Haus", {"question", "house"}),
        ("Wald -Haus", {"house", "forest"}),  # only words as typed exclude
    ):
        assert {hit.id for hit in index.search(query)} == expected, query


def test_the_interpretation_has_the_compounds(index):
    said = index.search("Frage").interpretation
    assert (said.unknown, said.prefixes) == ((), {"Frage*": ("fragezeich",)})
    assert {hit.id for hit in index.search("Haus liegt", match="all")} == {"house"}
    off = index.search("Frage", spelling="off")
    assert (off.total, off.interpretation.unknown) == (0, ("Frage",))


def test_languages_without_compounds_have_none(tmp_path):
    documents = [{"id": "1", "text": "a zookeeper"}]
    with build(documents, name="english", home=tmp_path, language="english") as index:
        assert index.search("keeper").total == 0
