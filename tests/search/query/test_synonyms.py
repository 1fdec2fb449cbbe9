"""Synonyms count like query words, each once, and change nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.analysis import Analyzer
from klsa_search.errors import QueryError, StoreError
from klsa_search.search.query.rules import RuleSet
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.rankers import RANKERS
from klsa_search.storage.rules import rules_of

from .conftest import WORDS, documents

TEXTS = {
    "a": "A television on a stand, and another stand.",
    "b": "The TVs in the room.",
    "c": "NYC is large.",
    "d": "New York, a city.",
    "e": "New shoes in the city.",
}
RULES = ["tv, television", "new york, nyc, big apple", "phone => tv", "room => york pier, hall"]


def _built(home):
    documents = [{"id": name, "text": text} for name, text in TEXTS.items()]
    opened = build(documents, name="towns", home=home, dimensions=2)
    opened.set_synonyms(RULES)
    return opened


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    """An index that tests read."""
    with _built(tmp_path_factory.mktemp("towns")) as opened:
        yield opened


@pytest.fixture
def index(tmp_path):
    """An index that the test writes to."""
    with _built(tmp_path) as opened:
        yield opened


def found(index, query, **asked):
    """Scores by document; every operator counts."""
    return {hit.id: hit.score for hit in index.search(query, operators=True, **asked)}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("tv", "tv television"),
        ("televisions", "tv television"),
        ("tv television", "tv television"),
        ("TV tv", "tv tv television"),
        ("phone", "tv"),
        ("phone tv", "tv television"),
        ("nyc", "nyc new york"),
        ("in New York!", "new york nyc"),
        ("big apple", "new york nyc"),
        ("new the york", "new york nyc"),
        ("york new", "york new"),
        ("room", "room"),  # no document has a pier, nor a hall
        ("+city nyc", "+city nyc new york"),
        ("tvv city -nyc", "tvv city -nyc"),
    ],
)
def test_a_query_is_that_of_all_its_words(towns, asked, meant):
    for ranker in (name for name, row in RANKERS.items() if not row.is_heavy):
        expected = found(towns, meant, ranker=ranker, synonyms=False)
        assert found(towns, asked, ranker=ranker) == expected, ranker


@pytest.mark.parametrize("asked", ['"new york"', "+tv", "-tv city", "text:tv", "telev*", "+nyc"])
def test_words_with_operators_have_no_synonyms(towns, asked):
    assert found(towns, asked) == found(towns, asked, synonyms=False)
    assert towns.search(asked).interpretation.synonyms == {}


def test_words_in_a_row_are_neighbours(towns):
    for apart in ("new +york", "new -city york", 'new "city" york'):
        assert towns.search(apart).interpretation.synonyms == {}


def test_the_synonyms_used_are_returned(towns):
    interpretation = towns.search("big apple phone room").interpretation
    assert interpretation.synonyms == {"big apple": ("new york", "nyc"), "phone": ("tv",)}
    assert interpretation.unknown == ("big", "apple", "phone")
    marked = towns.search("phone", highlight=True)[0].highlight["snippet"]
    assert [marked.text[first:after] for first, after in marked.marks] == ["TVs"]


def test_words_with_synonyms_are_not_corrected_and_corrections_have_synonyms(index):
    index.set_synonyms(["citi => room", "stand => shoes"])
    assert index.search("citi").interpretation.corrections == {}
    right = index.search("stannd").interpretation
    assert (right.corrections, right.synonyms) == ({"stannd": "stand"}, {"stand": ("shoes",)})
    told = index.search("stannd", spelling="suggest").interpretation
    assert (told.did_you_mean, told.synonyms) == ("stand", {})


def test_a_match_is_as_good_by_a_synonym(towns):
    def quality(query, **asked):
        answer = towns.search(query, quality=True, **asked)
        return {hit.id: hit.quality for hit in answer}

    alone = quality("television", synonyms=False)
    assert quality("tv")["a"] == quality("television")["a"] == alone["a"]
    assert quality("phone")["b"] == quality("tv", synonyms=False)["b"]
    assert quality("nyc")["c"] == quality("nyc", synonyms=False)["c"]


def test_explanations_add_up(towns):
    for query in ("tv city", "phone", "nyc"):
        for hit in towns.search(query, explain=True):
            told = hit.explanation
            parts = (told.lexical, told.coverage, told.latent, told.expansion)
            added = sum(part.value for part in parts if part is not None)
            assert added == pytest.approx(hit.score, abs=1e-6)
    told = towns.explain("phone", "b").lexical.terms
    assert [term.term for term in told] == ["tv"]


def test_many_at_once_are_as_each_alone(towns):
    asked = ["tv", "nyc city", "phone -room", '"new york" tv']
    for (positions, scores), text in zip(towns.rank_many(asked), asked, strict=True):
        alone = towns.rank(text)
        assert positions.tolist() == alone[0].tolist()
        assert scores.tolist() == alone[1].tolist()
        every = towns.scores(text)
        assert np.allclose(every[positions], scores, atol=1e-6)


def test_a_mask_changes_no_score(towns):
    mask = np.array([True, False, True, False, True])
    every = dict(zip(*map(list, towns.rank("nyc tv")), strict=True))
    within = dict(zip(*map(list, towns.rank("nyc tv", mask=mask)), strict=True))
    assert within == {position: score for position, score in every.items() if mask[position]}


def test_other_readers_take_them_up_and_pinned_ones_do_not(index):
    other, before = open_index(index.path.parent), index.snapshot()
    index.set_synonyms({"shoes": ["room"]})
    assert "b" in found(index, "shoes")
    assert "b" not in found(before, "shoes")
    assert other.synonyms != index.synonyms
    assert other.refresh()
    assert not other.refresh()
    assert other.synonyms == index.synonyms == {"shoes": ("room",)}
    with pytest.raises(StoreError, match="snapshot"):
        before.set_synonyms({})
    other.close()


def test_synonyms_apply_to_documents_added_later(index):
    assert "f" not in found(index, "room")
    index.add([{"id": "f", "text": "A hall."}])
    assert "f" in found(index, "room")
    index.set_synonyms({})
    assert "f" not in found(index, "room")


def test_an_index_can_be_without_and_a_query_with(tmp_path):
    given = [{"id": name, "text": text} for name, text in TEXTS.items()]
    with_off = build(given, name="off", home=tmp_path, dimensions=2, synonyms=False)
    with_off.set_synonyms(RULES)
    assert list(found(with_off, "phone", ranker="bm25")) == []
    assert list(found(with_off, "phone", ranker="bm25", synonyms=True)) == ["b"]
    with pytest.raises(QueryError, match="synonyms"):
        with_off.search("phone", synonyms="yes")
    with_off.close()


class Slices(tuple):
    """Terms that count how many sequences are read of them."""

    __slots__ = ()
    read = 0

    def __getitem__(self, at):
        Slices.read += isinstance(at, slice)
        return super().__getitem__(at)


LETTERS = st.lists(st.sampled_from("bcd"), min_size=1, max_size=4).map(" ".join)


@given(st.lists(LETTERS, max_size=5), st.lists(st.sampled_from("bcde"), max_size=9))
def test_sequences_are_found_from_the_left_longest_first(sequences, terms):
    expected, at = [], 0
    while at < len(terms):
        ends = range(len(terms), at, -1)
        after = next((end for end in ends if " ".join(terms[at:end]) in sequences), None)
        expected += [] if after is None else [(at, after)]
        at = at + 1 if after is None else after
    synonyms = Synonyms(dict.fromkeys(sequences, ("z",)), Analyzer())
    assert [(begin, end) for begin, end, _ in synonyms.find(terms)] == expected


def test_only_lengths_of_sequences_that_begin_with_a_term_are_tried(monkeypatch):
    monkeypatch.setattr(Slices, "read", 0)
    words = [f"w{n}" for n in range(40)]
    sequences, query = (" ".join(words), "w3 w4"), Slices(words[1:] * 20)
    synonyms = Synonyms(dict.fromkeys(sequences, ("tv",)), Analyzer())
    assert [after - begin for begin, after, _ in synonyms.find(query)] == [2] * 20
    assert Slices.read == 20
    rules = [
        {"id": sequence[:2], "when": {"query_contains": sequence}, "then": {"hide": ["a"]}}
        for sequence in sequences
    ]
    matching = RuleSet(rules_of(rules), Analyzer()).matching([query], None)
    assert [rule.id for rule in matching] == ["w3"]
    assert Slices.read == 40


QUERIES = st.lists(st.sampled_from([*WORDS, "+wing", '"wi fi"', "-drag", "-"]), max_size=6)
SOME = st.lists(st.sampled_from(WORDS[:9]), min_size=1, max_size=2).map(" ".join)


@pytest.fixture(scope="module")
def alone(index_of):
    return index_of(documents(), dimensions=4)


@given(QUERIES.map(" ".join), st.dictionaries(SOME, st.lists(SOME, max_size=2), max_size=3))
def test_whatever_the_synonyms_a_query_can_be_without(alone, query, synonyms):
    alone.set_synonyms({})
    before = alone.search(query)
    alone.set_synonyms(synonyms)
    without = alone.search(query, synonyms=False)
    assert (without.hits, without.total) == (before.hits, before.total)
    with_them = alone.search(query)
    assert {hit.id for hit in alone.search(query, 60, ranker="bm25", synonyms=False)} <= {
        hit.id for hit in alone.search(query, 60, ranker="bm25")
    }
    if not with_them.interpretation.synonyms:
        assert with_them.hits == before.hits


def test_a_repeated_word_has_its_synonyms_once(towns):
    read = towns.search("tv tv television").interpretation
    assert read.words == ("tv", "tv", "television")
    assert read.synonyms == {"tv": ("television",), "television": ("tv",)}


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_misspelt_word_may_be_one_of_synonyms_or_rules(index_of, partitions):
    """Though no document has it: it finds what it would find if it had been typed correctly."""
    texts = ["laptop of 15 inches", "laptop bag", "shoes for runners", "sneakers", "winter coat"]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    index = index_of(rows, partitions=partitions, workers=1)
    index.set_synonyms(["Notebook => laptop", "zapatos deportivos => shoes", "trainers => laptop"])
    pin = {"pin": [{"id": "4", "position": 1}]}
    index.set_rules([{"id": "sale", "when": {"query_contains": "clearance"}, "then": pin}])
    for typed, meant in [
        ("notebok", "notebook"),
        ("ntoebook", "notebook"),
        ("notebok bag", "notebook bag"),
        ("note bok bag", "notebook bag"),
        ("zapatos deportvos", "zapatos deportivos"),
        ("clearence", "clearance"),
        ("clearanec notbook", "clearance notebook"),
    ]:
        results, expected = index.search(typed), index.search(meant)
        assert [hit.id for hit in results] == [hit.id for hit in expected]
        assert len(results) > 0
        assert results.rules == expected.rules
        read = expected.interpretation.synonyms.values()
        assert [*results.interpretation.synonyms.values()] == [*read]
        assert not results.interpretation.corrections.keys() & {*results.interpretation.unknown}
        suggested = index.search(typed, spelling="suggest").interpretation
        assert suggested.did_you_mean is None or suggested.did_you_mean.lower() == meant
    assert index.search("notebok", synonyms=False).interpretation.corrections == {}
    assert index.search("nteb").interpretation.corrections == {}
    index.set_synonyms({})
    assert index.search("notebok").interpretation.corrections == {}


def test_a_word_of_rules_is_no_correction_of_itself(index_of):
    index = index_of({"u": "an ultrabook of steel", "g": "a gift card", "n": "steel pipe"})
    pin = {"pin": [{"id": "g", "position": 1}]}
    words = ["ultrabok", "notebook"]
    index.set_rules([{"id": w, "when": {"query_is": w}, "then": pin} for w in words])
    found = index.search("ultrabok")
    assert [hit.id for hit in found] == ["g", "u"]
    assert found.interpretation.corrections == {"ultrabok": "ultrabook"}
    found = index.search("notebook")
    assert [hit.id for hit in found] == ["g"]
    assert found.interpretation.corrections == {}
    assert found.interpretation.did_you_mean is None


def test_words_of_documents_are_likelier_than_those_of_rules(index_of):
    index = index_of({str(number): f"seal {number} of a pump" for number in range(20)})
    index.set_rules([{"id": "r", "when": {"query_is": "sale"}, "then": {"hide": ["1"]}}])
    assert index.search("sael").interpretation.corrections == {"sael": "seal"}
    assert index.search("salle").interpretation.corrections == {"salle": "sale"}
