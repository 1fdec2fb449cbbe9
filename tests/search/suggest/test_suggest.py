"""Suggestions against a word-by-word reading of the documents."""

import random
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.analysis import Analyzer
from klsa_search.errors import ArgumentError, QueryError
from klsa_search.search.suggest import titles

WORDS = ["wing", "wings", "winter", "drag", "flow", "network", "netting", "the", "Zürich", "雪"]
analyzer = Analyzer()


def documents(count=80):
    made = random.Random(5)
    return [
        {
            "id": str(number),
            "title": " ".join(made.choices(WORDS, k=made.randrange(4))),
            "text": " ".join(made.choices(WORDS, k=made.randrange(1, 9))),
            "half": number % 2,
            "third": number % 3,
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with_later = build(documents()[:60], name="few", home=home, dimensions=4, z=3)
    for later in documents()[60:]:
        with_later.suggest("wing")  # titles are read bit by bit
        with_later.add([later])
    with_later.delete(["3", "61"])
    yield with_later
    with_later.close()


LOG_FILES = [each for each in documents() if each["id"] not in ("3", "61")]


def containing_any(term):
    """How many documents hold a term."""
    return sum(term in analyzer.terms(f"{each['title']} {each['text']}") for each in LOG_FILES)


def containing_all(*words):
    """How many documents have all of some words that any document has."""
    wanted = {term for word in words for term in analyzer.terms(word) if containing_any(term)}
    return sum(
        wanted <= set(analyzer.terms(f"{each['title']} {each['text']}")) for each in LOG_FILES
    )


def having(*words):
    """How many documents have some words side by side, in one of their parts."""
    wanted = [analyzer.term(word) for word in words]
    count = 0
    for each in LOG_FILES:
        parts = [list(analyzer.map_words(each[part], analyzer.term, analyzer.term_of.pair))
                 for part in ("title", "text")]  # fmt: skip
        count += any(
            part[first : first + len(wanted)] == wanted
            for part in parts
            for first in range(len(part))
        )
    return count


def of_kind(index, kind, typed, k=20):
    return [each for each in index.suggest(typed, k) if each.kind == kind]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("win", {"wing", "wings", "winter"}),
        ("WING", {"wing", "wings"}),
        ("unheard ne", {"network", "netting"}),
        ("zü", {"Zürich"}),
        ("wing ", set()),
        ("", set()),
        ("the", set()),
    ],
)
def test_words_begin_as_typed_and_the_most_frequent_is_first(index, typed, words):
    found = of_kind(index, "word", typed)
    assert {each.text for each in found} <= words
    assert len(found) == len({analyzer.term(word) for word in words})
    counts = [each.documents for each in found]
    assert counts == sorted(counts, reverse=True)
    for each in found:
        assert each.documents == containing_all(each.query)
        assert each.query.startswith(typed[: typed.rfind(" ") + 1])


@pytest.mark.parametrize(
    "typed", ["wing ", "wing w", "wing drag", "drag wing ", "drag wing dr", "flow"]
)
def test_phrases_go_on_with_what_was_typed(index, typed):
    found = of_kind(index, "phrase", typed)
    begun = typed.split() if typed.endswith(" ") or typed == "flow" else typed.split()[:-1]
    expected = set()
    for word in {analyzer.term(word) for word in WORDS} - {""}:
        fits = word.startswith("" if begun == typed.split() else typed.split()[-1])
        if fits and having(*begun, word) >= 2:
            expected.add(word)
    if expected:

        def last_terms(suggestions):
            return {analyzer.terms(each.text)[-1] for each in suggestions
                    if len(each.text.split()) == len(begun) + 1}  # fmt: skip

        assert last_terms(found) <= expected <= last_terms(index.suggest(typed, 20))
    for each in found:
        assert each.documents >= index.search(f'"{each.text}"').total >= 2


@pytest.mark.parametrize("typed", ["wing", "w", "wing d", "flow wing", "雪", "ZÜR", "-wing"])
def test_titles_have_what_was_typed_where_a_word_begins(index, typed):
    line = typed.lower().lstrip("-")

    def found_in(title):
        return f" {line}" in f" {title.lower()}"

    expected = {each["title"].lower() for each in LOG_FILES if found_in(each["title"])}
    found = of_kind(index, "title", typed, 10_000)
    others = {each.query.lower() for each in index.suggest(typed, 10_000) if each.kind != "title"}
    shown = {each.text.lower() for each in found}
    assert shown == expected - (others & expected - shown)
    assert len(found) == len(shown)
    begins = [each.text.lower().startswith(line) for each in found]
    assert begins == sorted(begins, reverse=True)
    for each in found:
        own = sum(one["title"].lower() == each.text.lower() for one in LOG_FILES)
        assert (each.documents >= own, each.query) == (True, each.text)


def test_deleted_words_are_not_suggested_and_new_ones_are(tmp_path):
    index = build([{"id": "a", "title": "Lamps", "text": "lantern"}], name="one", home=tmp_path)
    assert {each.text for each in index.suggest("la")} == {"Lamps", "lantern"}
    assert index.suggest("la", 2**64) == index.suggest("la", 10_000)
    before = index.snapshot()
    index.add([{"id": "b", "title": "Ladders", "text": "ladder"}])
    index.delete(["a"])
    assert {each.text for each in index.suggest("la")} == {"Ladders", "ladder"}
    assert {each.text for each in before.suggest("la")} == {"Lamps", "lantern"}
    index.close()


@pytest.mark.parametrize(
    ("typed", "right"),
    [("netwrk", "network"), ("drag nettting", "netting"), ("wnitre", "winter"), ("qqqq", None)],
)
def test_a_misspelt_word_is_put_right(index, typed, right):
    found = of_kind(index, "correction", typed)
    if right is None:
        assert not found
        return
    assert found[0].text == right
    assert found[0].query == f"{typed[: typed.rfind(' ') + 1]}{right}"
    assert found[0].documents == containing_all(found[0].query)


def test_words_that_are_probably_misspelt_in_documents_are_suggested_last(tmp_path, monkeypatch):
    monkeypatch.setattr("klsa_search.search.query.corrections.MIN_DOCUMENTS", 1)
    texts = ["headphnoes", *["headphones"] * 100]
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="shop", home=tmp_path)) as index:
        assert [each.text for each in index.suggest("headph")][:2] == ["headphones", "headphnoes"]
        assert [(each.kind, each.text) for each in index.suggest("headphn")] == [
            ("correction", "headphones"), ("word", "headphnoes")
        ]  # fmt: skip


def test_every_suggested_word_stands_with_those_before_it(tmp_path):
    texts = ["nike shoe", "recipe for soup", "nike running jacket", "recipe for bread"]
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="shop", home=tmp_path)) as index:
        assert [(each.query, each.documents) for each in index.suggest("nike r")] == [
            ("nike running", 1)
        ]
        assert [each.query for each in index.suggest("soup for re")] == ["soup for recipe"]
        assert index.suggest("jacket re") == ()
        for each in index.suggest("nike s"):
            assert index.search(each.query, match="all").total == each.documents


@given(
    typed=st.text(max_size=40)
    | st.lists(st.sampled_from([*WORDS, "-", '"', "wi", "xq"])).map(" ".join)
)
def test_any_text_has_an_answer_of_at_most_k(index, typed):
    found = index.suggest(typed, 5)
    assert len(found) <= 5
    assert found == index.suggest(typed, 5)
    for each in found:
        assert each.text
        assert each.documents >= 1


def test_values_other_than_text_are_refused(index):
    with pytest.raises(ArgumentError, match="give a text"):
        index.suggest(None)
    with pytest.raises(QueryError, match="k = "):
        index.suggest("w", k="many")


@given(
    typed=st.lists(st.sampled_from([*WORDS, "wi", "netw", "xq", "flow ", "drg"])).map(" ".join),
    chosen=st.sampled_from([None, "half = 0", "half = 1 AND third = 2"]),
    match=st.sampled_from(["any", "most", "all"]),
)
def test_a_search_finds_as_many_documents_as_a_suggestion_says(index, typed, chosen, match):
    for each in index.suggest(typed, 8, filter=chosen, match=match):
        assert each.documents == index.search(each.query, filter=chosen, match=match).total
        assert index.search(each.query, filter=chosen, match="all").total


def test_titles_and_ids_are_queries_that_find_their_document(tmp_path):
    titles = ["Cut -fast and +slow", "NOT for sale", 'A "quoted" word*', "title:cut"]
    documents = [
        {"id": f"SUP-105{number}", "title": title, "text": f"text {number}", "open": number % 2}
        for number, title in enumerate(titles)
    ]
    with closing(build(documents, name="tickets", home=tmp_path)) as index:
        for number, title in enumerate(titles):
            (found,) = of_kind(index, "title", title)
            assert found.text == title
            hits = index.search(found.query, match="all")
            assert f"SUP-105{number}" in {hit.id for hit in hits}
            assert hits.total == found.documents
        for typed in ("SUP-105", "sup-105", "sup 105", "105"):
            found = {each.query for each in of_kind(index, "id", typed)}
            assert found == ({each["id"] for each in documents} if " " not in typed else set())
        found = index.suggest("SUP-105", filter="open = 1")
        assert [each.query for each in found] == ["SUP-1051", "SUP-1053"]
        for each in found:
            assert index.search(each.query, filter="open = 1", match="all")[0].id == each.query


def test_codes_are_completed_as_documents_write_them(tmp_path):
    texts = ["error E-1043/2", "error E-1043/7 of 2024", "made in 2024, error E-99"] * 2
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="tickets", home=tmp_path)) as index:
        assert [each.query for each in index.suggest("E-1043/2")] == ["E-1043/2"]
        assert {each.query for each in index.suggest("E-104")} >= {"E-1043"}
        assert all("2024" not in each.query for each in index.suggest("error E-1043/2"))


def test_a_word_within_a_name_is_completed_as_documents_write_it(tmp_path):
    texts = ["app.ini of the invoice", "an app.ini", "app for an invoice"]
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(documents, name="files", home=tmp_path)) as index:
        assert [each.query for each in index.suggest("app.in")] == ["app.ini"]
        assert "ini.invoice" in [each.query for each in index.suggest("ini.in")]


def test_titles_read_bit_by_bit_are_those_read_at_once(index):
    with closing(open_index(index.path.parent)) as at_once:
        for typed in ("w", "wing", "netting f"):
            assert index.suggest(typed, 50) == at_once.suggest(typed, 50)
    assert len(index) == len(LOG_FILES)
    assert len(LOG_FILES) < titles.MAX_CANDIDATES
