"""Queries that mean stop words: names, capitals, quotes, and queries of nothing else."""

import pytest

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.analysis.languages import stop_list
from klsa_search.core.build_settings import AnalysisSettings

NAMES = [
    {"id": "it", "title": "IT department", "text": "The IT department fixes laptops"},
    {"id": "phone", "title": "AT&T contract", "text": "Our AT&T contract ends"},
    {"id": "t", "title": "T shirt", "text": "T shirts for T parties in T town"},
    {"id": "a", "title": "Vitamin A", "text": "Vitamin A is for eyes"},
    {"id": "c", "title": "Vitamin C", "text": "Vitamin C is for colds, and it is a vitamin"},
    {"id": "c&a", "title": "Shopping", "text": "Coats of C and A, support for it"},
    {"id": "car", "text": "repair of the A/C of a car"},
    {"id": "repair", "title": "Repair", "text": "repair of C strings"},
    {"id": "ai", "title": "A.I.", "text": "A film of robots"},
    {"id": "i", "title": "I, Robot", "text": "A film I saw"},
    {"id": "be", "text": "to be or not to be"},
    {"id": "the", "title": "The The", "text": "A band"},
    {"id": "who", "title": "The Who", "text": "Another band of those who sing"},
]


@pytest.fixture(scope="module")
def index(index_of):
    return index_of(NAMES)


def ids(index, query, **options):
    return [hit.id for hit in index.search(query, **options)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("IT", ["it"]),
        ("AT&T", ["phone"]),
        ("A/C repair", ["car"]),
        ("A.I.", ["ai"]),
        ("A.I. robots", ["ai"]),
        ("at&t", ["phone"]),
        ("vitamin A", ["a"]),
        ('"vitamin A"', ["a"]),
        ('"vitamin a"', ["a"]),
        ("IT department", ["it"]),
        ("C and A", ["c&a"]),
        ("The The", ["the"]),
        ("to be or not to be", ["be"]),
        ("TO BE OR NOT TO BE", ["be"]),
        ('"to be"', ["be"]),
        ("title:IT", ["it"]),
        ("+IT laptops", ["it"]),
        ("IT AND (department OR support)", ["it"]),
        ('"The Who"', ["who"]),
    ],
)
def test_names_of_stop_words_are_found(index, query, expected):
    assert ids(index, query) == expected


def test_stop_words_in_small_letters_are_left_out_of_longer_queries(index):
    assert ids(index, "it support")[0] == "c&a"
    assert ids(index, "vitamin a")[:2] == ["a", "c"]
    assert ids(index, "who")[0] == "who"
    assert index.search("vitamin a").interpretation.stop_words == ()
    assert index.search("the zebra").interpretation.stop_words == ()


def test_a_letter_at_the_end_of_a_short_query_is_a_part_of_the_name(index):
    assert [hit.id for hit in index.search("vitamin a", match="all")] == ["a"]
    for query in ("what a vitamin", "all of the vitamin a"):
        assert {"a", "c"} <= {hit.id for hit in index.search(query, match="all")}, query


def test_a_stop_word_alone_is_found_in_any_case(index):
    assert {*ids(index, "it")} == {"it", "c", "c&a"}
    assert index.search("it").total == 3
    assert ids(index, "the")[0] == "the"
    assert ids(index, "they") == []
    # All words of the query, if no document has them in sequence.
    assert ids(index, "be to not") == ["be"]
    assert ids(index, "be they") == []


def test_the_interpretation_has_the_stop_words_that_count(index):
    said = index.search("IT department").interpretation
    assert (said.words, said.stop_words, said.phrases) == (("department",), ("IT",), ("IT",))
    said = index.search("to be or not to be").interpretation
    assert (said.words, said.stop_words) == ((), ("to", "be", "or", "not"))
    said = index.search("vitamin THE").interpretation
    assert said.relaxed == {"THE": "no_match"}
    assert ids(index, "IT department", operators=False)[0] == "it"
    assert index.search("IT department", operators=False).interpretation.phrases == ()
    # Capitals say nothing if all words have them.
    assert index.search("THE VITAMIN").interpretation.phrases == ()


def test_masks_and_scores_agree_with_search(index):
    scores = index.scores("it")
    assert {index.ids()[n] for n in scores.nonzero()[0]} == {"it", "c", "c&a"}
    assert ids(index, "it -vitamin") == ["it", "c&a"]


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_stop_words_of_later_documents_are_found(tmp_path, partitions):
    index = build(NAMES, name="later", home=tmp_path, partitions=partitions, workers=1)
    index.add(
        [{"id": "new", "title": "IT", "text": "Are they in the IT team? To be, or not to be."}]
    )
    index.delete(["it"])
    assert ids(index, "IT") == ["new"]
    assert {*ids(index, "it")} == {"new", "c", "c&a"}
    assert {*ids(index, "to be or not to be")} == {"be", "new"}
    assert ids(index, "IT team") == ["new"]
    index.close()


def test_german_articles_are_words_unless_they_are_left_out(tmp_path):
    documents = [
        {"id": "1", "text": "Der Hund bellt"},
        {"id": "2", "text": "Eine Katze schläft"},
    ]
    index = build(documents, name="words", home=tmp_path, language="german")
    assert ids(index, "der") == ["1"]
    index.close()
    options = {"language": "german", "extra_stop_words": ["der", "eine"]}
    index = build(documents, name="left-out", home=tmp_path, **options)
    assert ids(index, "der") == ["1"]
    assert ids(index, "DER Hund") == ["1"]
    index.close()


def test_long_documents_are_found_by_their_stop_words(index_of):
    long = "\n\n".join(f"Paragraph {n} of many words that say nothing at all." for n in range(200))
    index = index_of({"long": long + "\n\nIt will be.", "other": long})
    assert ids(index, "it will be") == ["long"]
    assert [hit.id.partition("#")[0] for hit in index.search("it will be", group="passage")] == [
        "long"
    ]


@pytest.mark.parametrize("language", ["english", "german", "russian", "arabic", "hindi", "chinese"])
def test_stop_words_of_a_long_list_are_found(language, index_of):
    analyzer = Analyzer(AnalysisSettings(language=language, stop_words="long"))
    words = sorted(
        word for word in stop_list(language) if [*analyzer.map_words(word, str, str)] == [word]
    )
    first, last = f"{words[0]} {words[1]}", f"{words[-2]} {words[-1]}"
    index = index_of({"first": first, "last": last}, language=language, stop_words="long")
    assert ids(index, first)[0] == "first"
    assert ids(index, f'"{last}"') == ["last"]
