"""Rules change which documents a search finds and where, as if the hits were rearranged by hand."""

import pickle
import random
from contextlib import closing
from datetime import datetime
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.analysis import Analyzer
from klsa_search.errors import QueryError, StoreError
from klsa_search.search.query import rules as query_rules
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.rules import RuleSet, readings_of
from klsa_search.storage.rules import rules_of

COUNT = 140  # above the size up to which all documents are scored
COLOURS = ("red", "green", "blue")
PARTS = ("lexical", "coverage", "latent", "expansion")


@pytest.fixture(
    scope="module", params=[1, pytest.param(3, marks=pytest.mark.slow)], ids="in {} parts".format
)
def index(request, tmp_path_factory):
    documents = [
        {
            "id": f"d-{n}",
            "title": f"Jacket {n}",
            "text": f"A {COLOURS[n % 3]} jacket for winter" + " and snow" * (n % 5) + f" w{n % 7}.",
            "colour": COLOURS[n % 3],
            "price": n,
            "group": n // 2,
        }
        for n in range(COUNT)
    ] + [
        {"id": "tent", "title": "Tent", "text": "A tent.", "colour": "red", "price": 7, "group": 0}
    ]
    home, partitions = tmp_path_factory.mktemp("home"), request.param
    opened = build(
        documents, name="shop", home=home, dimensions=8, partitions=partitions, workers=1
    )
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _no_rules_left(index):
    yield
    if index.rules:
        index.set_rules([])


def rule(id_="r", *, pin=(), hide=(), boost=(), **when):
    then = {
        "pin": [{"id": id_, "position": position} for id_, position in pin],
        "hide": list(hide),
        "boost": [{"filter": filter_, "factor": factor} for filter_, factor in boost],
    }
    return {"id": id_, "when": when, "then": {name: part for name, part in then.items() if part}}


def ids(results):
    return [hit.id for hit in results]


def every(index, query="winter jacket", k=COUNT + 1, **options):
    return index.search(query, k, **options)


@pytest.mark.parametrize(
    ("when", "queries", "others"),
    [
        (
            {"query_is": "winter jacket"},
            ["winter jacket", "Wínter  JACKETS!"],
            ["jacket winter", "winter", "red winter jacket", "winter -jacket"],
        ),
        (
            {"query_contains": "winter jackets"},
            ["winter jacket", "red winter jacket", "winter jackets of snow"],
            ["jacket winter", "winter red jacket", "winter -jacket"],
        ),
        ({"query_contains": "zeppelin"}, ["red zeppelins"], ["red"]),
        ({}, ["winter", "zeppelin"], ["", " "]),
    ],
)
def test_queries_that_rules_apply_to(index, when, queries, others):
    index.set_rules([rule(pin=[("tent", 1)], **when)])
    for query in queries:
        results = index.search(query)
        assert (results.rules, ids(results)[:1]) == (("r",), ["tent"]), query
    for query in others:
        assert index.search(query).rules == (), query
    assert index.search(queries[0], rules=False).rules == ()


analyzer = Analyzer()
LETTERS = st.lists(st.sampled_from("bcd"), min_size=1, max_size=4).map(" ".join)


@given(st.lists(LETTERS, max_size=5, unique=True), st.lists(st.sampled_from("bcde"), max_size=9))
def test_rules_apply_to_all_sequences_of_their_terms(queries, terms):
    text = f" {' '.join(terms)} "
    expected = [str(at) for at, query in enumerate(queries) if f" {query} " in text]
    rules = [rule(str(at), hide=["x"], query_contains=query) for at, query in enumerate(queries)]
    matching = RuleSet(rules_of(rules), analyzer).matching([tuple(terms)], None)
    assert [found.id for found in matching] == expected


def readings(query, fields=(), **said):
    found = readings_of(query, QueryInterpretation(**said), fields, analyzer)
    return [" ".join(terms) for terms in found]


def test_queries_are_read_as_typed_and_as_understood():
    corrections = {"wintr": "winter"}
    typed, meant = "wintr jacket", "winter jacket"
    assert readings(typed, corrections=corrections) == [typed, meant]
    assert readings(typed, corrections=corrections, unknown=("wintr",)) == [typed]
    joined = {"head phones": "headphones"}
    assert readings("red head phones", variants=joined) == ["red head phone", "red headphon"]
    assert readings("wash", corrections={"wash": "wash machine"}) == ["wash", "wash machin"]
    begun = {"jack*": ("jacket", "jackal")}
    assert readings("winter jack", prefixes=begun) == ["winter jack", meant]
    assert readings("wintr jack", prefixes=begun, corrections=corrections) == ["wintr jack", meant]
    assert readings("jack*", prefixes=begun) == ["jack"]


def test_excluded_words_are_dropped_as_words():
    assert readings("e-mail server -mail", excluded=("mail",)) == ["e mail server"]
    query = '-"red mail" e-mail +server -title:old'
    assert readings(query, {"title"}, excluded=('"red mail"', "title:old")) == ["e mail server"]


def test_rules_and_synonyms_see_what_was_joined_completed_and_corrected(tmp_path):
    texts = ["wireless headphones", "a phone case", "head of sales", "earbuds", "headphones stand"]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    with closing(build(rows, name="shop", home=tmp_path)) as index:
        index.set_rules([rule("pinned", pin=[("2", 1)], query_is="headphones")])
        index.set_synonyms({"headphones": ["earbuds"]})
        for query in ("headphones", "head phones", "headphoens"):
            found = index.search(query, match="all")
            assert (found.rules, ids(found)) == (("pinned",), ["2", *ids(found)[1:]]), query
            assert "3" in ids(found), query
        found = index.search("headph", prefix="last", match="all")
        assert (found.rules, {*ids(found)}) == (("pinned",), {"0", "2", "3", "4"})


def test_rules_for_a_word_that_is_corrected_apply(index):
    rules = [
        rule("typed", pin=[("tent", 1)], query_contains="jackte"),
        rule("meant", hide=["d-1"], query_is="winter jacket"),
    ]
    index.set_rules(rules)
    results = index.search("winter jackte", COUNT)
    assert results.interpretation.corrections == {"jackte": "jacket"}
    assert results.rules == ("typed", "meant")
    assert ids(results)[0] == "tent"
    assert "d-1" not in ids(results)


def test_filters_and_times_that_rules_apply_to(index, monkeypatch):
    index.set_rules([rule(pin=[("tent", 1)], filter="colour = red")])
    applied = {
        "colour = red": ("r",),
        "colour = red AND price < 50": ("r",),
        "(price < 50 AND (price > 1 AND colour = red))": ("r",),
        "colour = green": (),
        "NOT colour = red": (),
        "colour = red OR price < 50": (),
    }
    for filter_, rules in applied.items():
        assert index.search("winter", filter=filter_).rules == rules, filter_
    assert index.search("", filter={"field": "colour", "=": "red"}).rules == ("r",)
    for invalid in (5, [{"field": "colour", "=": "red"}]):
        with pytest.raises(QueryError, match="is not a filter"):
            index.search("winter", filter=invalid)
    assert index.search("winter").rules == ()
    for text, values in [("price = 7", (7, 7.0, "7")), ("colour = true", (True, "true"))]:
        index.set_rules([rule(pin=[("tent", 1)], filter=text)])
        for value in values:
            filter_ = {"field": text.partition(" ")[0], "=": value}
            assert index.search("winter", filter=filter_).rules == ("r",), filter_
    index.set_rules(
        [
            rule(
                pin=[("tent", 1)],
                **{"from": "2026-12-01T00:00:00+01:00", "until": "2026-12-02T00:00:00+01:00"},
            )
        ]
    )
    for time, rules in [
        ("2026-11-30T22:59:59+00:00", ()),
        ("2026-11-30T23:00:00+00:00", ("r",)),
        ("2026-12-01T22:59:59+00:00", ("r",)),
        ("2026-12-01T23:00:00+00:00", ()),
    ]:
        monkeypatch.setattr(query_rules, "now", lambda time=time: datetime.fromisoformat(time))
        assert index.search("winter").rules == rules, time


OPTIONS = [
    {},
    {"filter": "price < 40"},
    {"filter": "price < 40", "query": " "},
    {"min_score": 0.15},
    {"facets": ["colour"]},
    {"match": "all", "ranker": "bm25"},
    {"ranker": "rm3"},  # of one part only
    {"sort": ["price"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_pins_and_hidden_documents_are_those_of_a_list_edited_by_hand(index, options):
    if len(index.partitions) > 1 and options.get("ranker") == "rm3":
        options = {"ranker": "bm25"}
    rng = random.Random(0)
    some = ["tent", "gone", *(f"d-{n}" for n in range(60))]
    pins = [(id_, rng.randint(1, 9)) for id_ in rng.sample(some, 6)]
    pins += [("tent", 2), ("d-3", 1_000)]
    hidden = rng.sample(some, 3)
    query = options.get("query", "winter jacket")
    options = {name: value for name, value in options.items() if name != "query"}
    before = every(index, query, rules=False, **options)
    rules = [rule(f"pin-{n}", pin=[pin]) for n, pin in enumerate(pins)]
    index.set_rules([*rules, *([rule("hide", hide=hidden)] if hidden else [])])

    order = [id_ for id_ in ids(before) if id_ not in hidden]
    allowed = {"tent", *(f"d-{n}" for n in range(COUNT))}
    if "filter" in options:
        allowed = {"tent", *(f"d-{n}" for n in range(40))}
    positions = {}
    for id_, position in pins if "sort" not in options else ():
        if id_ in allowed and id_ not in hidden and id_ not in positions:
            while position in positions.values():
                position += 1
            positions[id_] = position
    order = [id_ for id_ in order if id_ not in positions]
    for id_, position in sorted(positions.items(), key=lambda each: each[1]):
        order.insert(position - 1, id_)

    after = every(index, query, **options)
    assert ids(after) == order
    assert after.total == len(order)
    scores = {hit.id: hit.score for hit in before}
    assert all(hit.score == scores[hit.id] for hit in after if hit.id in scores)
    assert [hit.rank for hit in after] == list(range(1, len(order) + 1))
    if "facets" in options:
        counted = sum(count for _, count in after.facets["colour"].values)
        assert counted == len(order)
    paged = [ids(index.search(query, 7, offset=7 * page, **options)) for page in range(3)]
    listed = list(chain.from_iterable(paged))
    if "sort" in options or "query" in options or "min_score" in options:
        assert listed == order[:21]
    # A deeper ranking may order the rest differently, but pages do not overlap.
    assert len(set(listed)) == len(listed)
    for page, found in enumerate(paged):
        wanted = {p: id_ for id_, p in positions.items() if 7 * page < p <= 7 * page + 7}
        assert {p: found[p - 7 * page - 1] for p in wanted} == wanted


def test_distinct_counts_pinned_documents(index):
    index.set_rules([rule(pin=[("d-9", 1), ("d-8", 2), ("d-3", 3)])])
    results = every(index, distinct="group")
    found = ids(results)
    assert found[0] == "d-9"
    assert "d-8" not in found  # of the group of d-9
    assert results.total == len(found) == COUNT // 2
    groups = [hit.metadata["group"] for hit in results]
    assert len(set(groups)) == len(groups)


def test_the_document_that_a_query_names_stays_first(index):
    index.set_rules([rule(pin=[("tent", 1), ("d-3", 2)])])
    assert ids(index.search("d-7"))[:3] == ["d-7", "tent", "d-3"]
    assert ids(index.search("d-3"))[:2] == ["d-3", "tent"]
    index.set_rules([rule(hide=["d-7"])])
    assert "d-7" not in ids(index.search("d-7", COUNT))


def test_pins_respect_operators_but_not_match(index):
    index.set_rules([rule(pin=[("d-1", 1)])])  # which is green
    assert ids(index.search("jacket -green"))[0] != "d-1"
    assert ids(index.search("+red jacket"))[0] != "d-1"
    assert ids(index.search("red jacket", match="all"))[0] == "d-1"


def test_boosts_multiply_scores(index):
    before = every(index, min_score=1e-6)  # of which all are rescored
    scores = {hit.id: hit.score for hit in before}
    index.set_rules(
        [
            rule("red", boost=[("colour = red", 3), ("size = 7", 2)]),
            rule("cheap", boost=[("price < 20", 0.5)], query_contains="jacket"),
        ]
    )
    results = every(index, explain=True)
    expected = {
        hit.id: np.float32(
            scores[hit.id]
            * (3 if hit.metadata["colour"] == "red" else 1)
            * (0.5 if hit.metadata["price"] < 20 else 1)
        )
        for hit in before
    }
    assert {hit.id: hit.score for hit in results} == pytest.approx(expected, rel=1e-6)
    assert [hit.score for hit in results] == sorted((hit.score for hit in results), reverse=True)
    assert results.total == before.total
    for hit in results:
        found = hit.explanation
        assert found.score == hit.score
        parts = [getattr(found, part).value for part in PARTS if getattr(found, part)]
        effects = [effect.value for effect in found.rules]
        assert sum(parts + effects) == pytest.approx(hit.score, rel=1e-4, abs=1e-6)
        assert [effect.rule for effect in found.rules] == [
            *(["red"] if hit.metadata["colour"] == "red" else []),
            *(["cheap"] if hit.metadata["price"] < 20 else []),
        ]
    assert len(index.rule_warnings()) == 1
    assert "size" in index.rule_warnings()[0]
    # Every page, minimum score and sort sees the same scores.
    assert ids(results)[10:15] == ids(index.search("winter jacket", 5, offset=10))
    least = results[20].score
    assert all(hit.score >= least for hit in every(index, min_score=least))
    assert ids(every(index, sort=["colour"]))[0] in ids(results)


def test_scores_stay_finite(index):
    index.set_rules([rule(str(n), boost=[("price >= 0", 100)] * 10) for n in range(10)])
    assert all(np.isfinite(hit.score) for hit in index.search("winter jacket"))
    index.set_rules([rule(str(n), boost=[("price >= 0", 0.01)] * 10) for n in range(10)])
    assert index.search("winter jacket").total == COUNT


def test_explanations_name_pins(index):
    index.set_rules([rule("a", pin=[("tent", 1)]), rule("b", pin=[("d-3", 1)])])
    first, second = index.search("winter jacket", 2, explain=True)
    assert [(each.rule, each.action, each.position) for each in first.explanation.rules] == [
        ("a", "pin", 1)
    ]
    assert [each.rule for each in second.explanation.rules] == ["b"]
    (plain,) = index.search("winter jacket", 1, explain=True, rules=False)
    assert plain.explanation.rules == ()


def test_at_most_ten_rules_apply(index):
    index.set_rules([rule(f"r-{n}", pin=[(f"d-{n}", 1)]) for n in range(1_000)])
    results = index.search("winter jacket", 11)
    assert results.rules == tuple(f"r-{n}" for n in range(10))
    assert ids(results)[:10] == [f"d-{n}" for n in range(10)]


def test_warnings_name_what_is_missing(index):
    index.set_rules([rule("a", pin=[("gone", 1)], hide=["lost"], query_is="the")])
    never, gone, lost = index.rule_warnings()
    assert ("never applies" in never, "'gone'" in gone, "'lost'" in lost) == (True,) * 3
    assert index.search("the").rules == ()


def test_other_handles_and_copies_see_rules(index):
    index.set_rules([rule(pin=[("tent", 1)])])
    other = open_index(index.path.parent)
    snapshot = other.snapshot()
    index.set_rules([rule(pin=[("d-3", 1)])])
    assert ids(other.search("winter"))[0] == "tent"
    other.refresh()
    copied = (other, snapshot) if len(index.partitions) == 1 else (other,)  # views are not pickled
    copies = [pickle.loads(pickle.dumps(each)) for each in copied]
    found = [ids(each.search("winter"))[0] for each in (other, snapshot, *copies)]
    assert found == ["d-3", "tent", "d-3", "tent"][: len(found)]
    with pytest.raises(StoreError, match="snapshot"):
        snapshot.set_rules([])
    for each in (*copies, other):
        each.close()


def test_rules_follow_the_documents(index):
    index.set_rules([rule(pin=[("new", 1), ("tent", 2)])])
    assert ids(index.search("winter"))[0] != "new"
    index.add([{"id": "new", "text": "A sledge."}])
    assert ids(index.search("winter"))[:2] == ["new", "tent"]
    index.delete(["new"])
    assert "new" not in ids(index.search("winter", COUNT + 1))
    assert index.rule_warnings() == ["rule 'r': the index has no document 'new'"]


def test_rankings_and_scores_ignore_rules(index):
    def ranked():
        doc_ids, _ = index.rank("winter jacket", COUNT + 1)
        return doc_ids.tolist(), index.explain("winter jacket", "d-3").score

    before = ranked()
    assert index.doc_ids(["d-3"])[0] in before[0]
    index.set_rules([rule(hide=["d-3"], pin=[("tent", 1)], boost=[("price > 1", 5)])])
    assert ranked() == before
