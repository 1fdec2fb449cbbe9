"""Ranked and allowed documents of a query, against a word-by-word reading."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.errors import QueryError, SettingsError
from klsa_search.search.query.operators import MAX_SIGNS
from tests.search.query.conftest import KINDS, WORDS, documents

analyzer = Analyzer()
words = st.sampled_from([*WORDS, "unheard", "wi-fi", "Networks"])
phrases = st.lists(words, min_size=1, max_size=3).map(lambda some: f'"{" ".join(some)}"')
STEMS = {
    "net*": "network netting",
    "netw*": "network",
    "networks*": "network",
    "wi*": "wi wing",
    "zz*": "",
}
prefixes = st.sampled_from(sorted(STEMS))
kinds = st.sampled_from([f'kind:"{kind}"' for kind in [*KINDS, "none"]])
in_fields = st.builds(
    "{}:{}".format, st.sampled_from(["title", "text"]), words | phrases | prefixes
)
clauses = st.builds(
    "{}{}".format, st.sampled_from(["", "+", "-"]), words | phrases | prefixes | in_fields | kinds
)


def sequence(text):
    """Terms of a text in their places, stop words by their codes."""
    return list(
        analyzer.map_words(text, lambda w: analyzer.term(w) or analyzer.term_of.stop_code(w), str)
    )


def follow(wanted, held):
    """Whether some terms follow one another in others."""
    return any(
        held[first : first + len(wanted)] == wanted for first in range(len(held) - len(wanted) + 1)
    )


def holds(document, clause):
    """Whether a document has what one clause without its sign asks for."""
    field, _, asked = clause.rpartition(":")
    asked = asked.strip('"')
    if field == "kind":
        return document["kind"] == asked
    parts = [sequence(document[part]) for part in ([field] if field else ["title", "text"])]
    if asked.endswith("*"):
        own = analyzer.term(asked[:-1])
        return any(
            str(term).startswith(asked[:-1]) or term == own for part in parts for term in part
        )
    return any(follow(sequence(asked), part) for part in parts)


def matches(document, query):
    """Whether a document may be answered."""
    for clause in query:
        bare = clause.lstrip("+-")
        limits = clause[0] in '+-"' or ":" in clause
        if limits and holds(document, bare) == (clause[0] == "-"):
            return False
    return True


def ranking_words(query):
    """The words that a query is ranked by, as one of plain words."""
    return " ".join(
        clause.lstrip("+").rpartition(":")[2].strip('"')
        for clause in query
        if not clause.startswith("-") and "kind:" not in clause
    )


@given(st.lists(clauses, max_size=4), st.sampled_from(["klsa", "bm25", "rm3"]))
def test_results_are_the_full_ranking_of_matching_documents(few_words, query, ranker):
    expanded = ranking_words(query)
    for prefix in sorted(STEMS, key=len, reverse=True):
        expanded = expanded.replace(prefix, STEMS[prefix])
    text = " ".join(query)
    every = few_words.search(expanded, 60, ranker=ranker, operators=False, spelling="off")
    given_by_id = {document["id"]: document for document in documents()}
    wanted = [(hit.id, hit.score) for hit in every if matches(given_by_id[hit.id], query)]
    found = few_words.search(text, 60, ranker=ranker, spelling="off", operators=True)
    assert [(hit.id, hit.score) for hit in found] == wanted
    few = few_words.search(text, 3, ranker=ranker, spelling="off", operators=True)
    assert [(hit.id, hit.score) for hit in few] == wanted[:3]
    terms = set(analyzer.terms(expanded))
    held = [
        document["id"]
        for document in given_by_id.values()
        if document["id"] not in ("3", "51")
        and matches(document, query)
        and terms & {*sequence(document["title"]), *sequence(document["text"])}
    ]
    assert found.total == few.total == len(found) >= len(held)


@given(
    st.text(st.sampled_from("wing drag the-'.,\n\té"), max_size=30)
    | st.text(max_size=20).map(str.casefold)  # a stop word in capitals is meant, as an operator is
)
def test_plain_words_are_read_as_if_there_were_no_operators(few_words, text):
    plain = few_words.search(text, operators=False)
    read = few_words.search(text)
    if not set('"“”„«»*:\\+-&|~^!?–—＂＋－＊：‐−') & set(text):
        assert read == plain
        scores = few_words.scores(text)
        assert np.array_equal(scores, few_words.scores(text, operators=False))


def test_everything_says_the_same(few_words):
    queries = ['wing -"drag"', "wing", 'title:wing "flow drag"', "net*", "-wing", ""]
    many = few_words.rank_many(queries, 60)
    for query, (positions, scores) in zip(queries, many, strict=True):
        results = few_words.search(query, 60)
        assert few_words.ids(positions) == [hit.id for hit in results]
        assert few_words.rank(query, 60)[1].tolist() == scores.tolist()
        by_document = few_words.scores(query)
        assert by_document[positions].tolist() == scores.tolist()
        assert np.count_nonzero(by_document) == len(positions)


def test_a_mask_and_a_query_both_leave_out(few_words):
    mask = few_words.fields["kind"].equal("Dry")
    found = few_words.search("wing -drag", 60, mask=mask)
    wanted = few_words.search("wing -drag kind:Dry", 60)
    assert found.hits == wanted.hits
    assert found.total == wanted.total


def test_the_interpretation_is_returned(few_words):
    said = few_words.search(
        'wing "wi fi" +flow -drag -"the networks" title:wings net* unheard the',
        1,
        operators=True,
    ).interpretation
    assert said.words == ("wing", "wi", "fi", "flow", "wings")
    assert said.unknown == ("unheard",)
    assert said.phrases == ('"wi fi"',)
    assert said.required == ("flow",)
    assert said.excluded == ("drag", '"the networks"')
    assert said.fields == ("title:wings",)
    assert said.prefixes == {"net*": ("network", "net")}


def test_with_all_operators_a_query_that_only_excludes_finds_nothing(few_words):
    found = few_words.search("-wing", operators=True)
    assert (len(found), found.total, found.interpretation.excluded) == (0, 0, ("wing",))


OPERANDS = {
    "title:net*": lambda title, text: "net" in title,
    'flow AND title:"the of"': lambda title, text: "the of" in title and "flow" in title + text,
    'title:"the of" OR title:wing': lambda title, text: "the of" in title or "wing" in title,
}


@pytest.mark.parametrize("query", OPERANDS)
def test_parts_of_fields_are_required_in_them(few_words, query):
    matches = OPERANDS[query]
    expected = {
        document["id"]
        for document in documents()
        if document["id"] not in ("3", "51") and matches(document["title"], document["text"])
    }
    found = few_words.search(query, 60)
    assert ({hit.id for hit in found}, found.total) == (expected, len(expected))


DELIBERATE = [
    *('"flow drag"', '"flow drag" wing', "wing -drag", "+wing -drag flow", "title:wing net*"),
    '"flow drag" wing net* -networks',  # more operators than plain words
    '+wing -"flow drag" kind:"Wet Roads" title:network drag flow',
    "+unheard wing",
    "wing drag -wi-fi",
]


@pytest.mark.parametrize("query", DELIBERATE)
def test_operators_of_short_and_deliberate_queries_count(few_words, query):
    by_default = few_words.search(query, 60)
    assert by_default == few_words.search(query, 60, operators=True)
    assert by_default.interpretation.relaxed == {}


RELAXED = {
    'what does "flow drag" do to a wing': {'"flow drag"': "plain_text"},
    "flow of networks and -drag": {"-drag": "plain_text"},
    'the wing, title:flow and +net* "a" b c': {
        "title:flow": "plain_text", "+net*": "plain_text", '"a"': "plain_text",
    },
    'wing\n-drag\n+"flow"': {"-drag": "plain_text", '+"flow"': "plain_text"},
    "-wing": {"-wing": "nothing_to_exclude_from"},
    '-wing -"flow drag"': {
        "-wing": "nothing_to_exclude_from", '-"flow drag"': "nothing_to_exclude_from",
    },
    '"wing the networks netting"': {'"wing the networks netting"': "no_match"},
    '"unheard wing" flow': {'"unheard wing"': "no_match"},
}  # fmt: skip


@pytest.mark.parametrize(("query", "relaxed"), RELAXED.items())
def test_operators_of_text_are_words(few_words, query, relaxed):
    by_default = few_words.search(query, 60)
    words = few_words.search(query, 60, operators=False)
    assert by_default.interpretation.relaxed == relaxed
    assert (by_default.hits, by_default.total) == (words.hits, words.total)
    assert words.hits
    assert few_words.search(query, 60, operators=True).interpretation.relaxed == {}


@given(st.lists(clauses, max_size=4))
def test_phrases_never_leave_nothing(few_words, query):
    """By default phrases are exact where a document has them all, and words where none has."""
    text = " ".join(query)
    found, strict = few_words.search(text), few_words.search(text, operators=True)
    if strict.hits:
        assert found.hits == strict.hits or found.interpretation.relaxed
    elif few_words.search(text, operators=False).hits and found.interpretation.relaxed:
        without = [clause for clause in query if clause[0] not in '"']
        left = few_words.search(" ".join(without), operators=True)
        assert found.hits or not left.hits


def test_a_phrase_that_no_document_has_leaves_the_other_operators(tmp_path):
    texts = ["a wing in heat flow", "wing drag", "the flow of drag over a wing"]
    documents = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    index = build(documents, home=tmp_path, name="few", dimensions=2)
    found = index.search('"flow wing" -drag')
    assert [hit.id for hit in found] == ["0"]
    assert found.interpretation.relaxed == {'"flow wing"': "no_match"}
    # Each is in a document, and no document has both.
    found = index.search('"heat flow" "wing drag"')
    assert {hit.id for hit in found} == {"0", "1", "2"}
    assert set(found.interpretation.relaxed.values()) == {"no_match"}
    # A deleted document has none.
    index.delete(["1"])
    assert index.search('"wing drag"').interpretation.relaxed == {'"wing drag"': "no_match"}
    index.close()


def test_an_index_can_be_without_operators(index_of):
    index = index_of(documents()[:5], operators=False, dimensions=2)
    assert index.search('wing -"drag"').interpretation.excluded == ()
    assert index.search('wing -"drag"').interpretation.relaxed == {}
    assert index.search('wing -"drag"', operators=True).interpretation.excluded == ('"drag"',)


def test_an_index_never_asks_for_all_operators(tmp_path):
    with pytest.raises(SettingsError, match="operators"):
        build(documents()[:5], home=tmp_path, name="all", operators=True)


def test_no_other_value(few_words):
    with pytest.raises(QueryError, match="operators"):
        few_words.search("wing", operators="no")


def test_phrases_longer_than_any_document(few_words):
    assert not few_words.search(f'"{"wing " * 3000}"', operators=True).hits


def test_signs_beyond_some_do_not_count(few_words):
    many = few_words.search(
        " ".join(f"-x{number}" for number in range(70)) + " -wing", operators=True
    ).interpretation
    assert len(many.excluded) == 64
    assert many.words == ()
    assert many.relaxed["-wing"] == "not_an_operator"
    assert (
        few_words.search('"wing drag" ' * 64 + "wing", operators=True).interpretation.phrases
        == ('"wing drag"',) * 64
    )


def test_phrases_beyond_the_first_ones_are_words_whatever_the_first_match(few_words):
    many = " ".join(f'"unheard wing{number}"' for number in range(MAX_SIGNS + 5))
    interpretation = few_words.search(many + ' "flow wing"', 5).interpretation
    reasons = Counter(interpretation.relaxed.values())
    assert reasons == {"no_match": MAX_SIGNS, "not_an_operator": 6}
    assert interpretation.phrases == ()
