"""A query means the same in all partitions of an index: corrections, prefixes, phrases."""

import numpy as np
import pytest

from klsa_search import build
from klsa_search.search.parts.part_set import LocalSearches
from klsa_search.search.query.parser import QueryParser

WORDS = [
    "engine", "engineer", "engineering", "valve", "validation", "validate", "pressure", "presser",
    "turbine", "turbulent", "coolant", "cooling", "wireless", "network", "networks", "gearbox",
    "gear", "box", "piston", "pistons", "printer", "printing", "Universität", "universities",
    "lubricant", "fuselage", "aileron", "rudder", "altimeter",
]  # fmt: skip

MISSPELT = [
    "engnie", "validaton presure", "netwrok turbien", "gerabox", "wirelessnetwork",
    "gearboxpiston", "lubrikant fuselage", "coolnat +pistn", "univresities", "printr engine",
    '"turbine coolnat"', '"fuselage rudder" altimetre', "alieron -ruder", "xyz piston",
]  # fmt: skip
"""Queries with words that no document contains."""

LAST = ["engin", "valida", "piston turb", "pres", "gear", "universit", "cooling net", "prin"]
"""Queries whose last word is being typed."""

OPERATORS = [
    '"gear box" engine', '"valve zebra" engine', '"piston valve coolant"', "turb* +engine*",
    "universit*", '"gear box" -"cooling network" rudder', "gear-box wire-less", '"rudder rudder"',
]  # fmt: skip


def documents():
    """Return short texts with the same word in several forms and cases."""
    rng = np.random.default_rng(3)
    made = []
    for number in range(1200):
        words = rng.choice(WORDS, int(rng.integers(3, 9))).tolist()
        if number % 3 == 0:
            words = [word.upper() if rng.random() < 0.3 else word for word in words]
        made.append({"id": f"doc-{number}", "title": words[0].title(), "text": " ".join(words)})
    return made


@pytest.fixture(scope="module")
def one(index_of):
    return index_of(documents())


@pytest.fixture(
    scope="module",
    params=[None, pytest.param(6, marks=pytest.mark.slow)],
    ids=["trained", "sampled"],
)
def four(tmp_path_factory, request):
    """Return an index whose training has all words, or lacks many of them."""
    home = tmp_path_factory.mktemp("four")
    with pytest.MonkeyPatch.context() as patched:
        if request.param is not None:
            patched.setattr("klsa_search.indexing.partitions.MOST", request.param)
        index = build(documents(), name="four", home=home, partitions=4, workers=1)
    with index:
        yield index


def found(index, query, **options):
    """Return interpretation and hits of a search, hits of equal scores by ID."""
    results = index.search(query, 1200, ranker="bm25", **options)
    hits = sorted((-hit.score, hit.id) for hit in results.hits)
    return results.interpretation, hits


MATCHES = ("any", "most", "all")

SEARCHES = [
    (MISSPELT, "spelling", ("auto",)),
    (LAST, "prefix", ("last",)),
    (OPERATORS, "match", MATCHES),
    (["doc-7"], "prefix", (None, "last")),
]


@pytest.mark.parametrize(
    ("queries", "option", "values"),
    SEARCHES,
    ids=["misspelt", "last", "operators", "id"],
)
def test_queries_are_read_alike(one, four, queries, option, values):
    for query in queries:
        for value in values:
            expected = found(one, query, **{option: value})
            assert found(four, query, **{option: value}) == expected, (query, value)


@pytest.mark.parametrize("count", [2, 3])
def test_other_partitions_match_the_words_of_an_id_alike(tmp_path, count):
    """No document contains all words of an ID if one of them is unknown."""
    made = [{"id": f"id-{n}", "text": f"road {10 if n % 2 else 20} pump"} for n in range(12)]
    made += [{"id": f"road-{n}", "text": f"road {n} valve"} for n in (10, 20)]
    with (
        build(made, name="one", home=tmp_path) as one,
        build(made, name="several", home=tmp_path, partitions=count, workers=1) as several,
    ):
        for query in ("id-10", "id-7", "ID 10", "road-20"):
            for match in MATCHES:
                expected = one.search(query, match=match)
                results = several.search(query, match=match)
                assert results.total == expected.total
                assert results.interpretation == expected.interpretation
                assert found(several, query, match=match) == found(one, query, match=match)
        for typed in ("id-1", "road-"):
            assert several.suggest(typed) == one.suggest(typed)


def test_an_id_names_one_document_of_all_partitions(tmp_path):
    """Several IDs differ in case and signs alone, and each partition may have one of them."""
    forms = ("AB-{}", "ab-{}", "ab_{}", "ab{}", "Ab-{}")
    made = [
        {"id": form.format(n), "text": f"road {n % 3 + 100} pump ab"}
        for n in range(10, 13)
        for form in forms
    ]
    with (
        build(made, name="one", home=tmp_path) as one,
        build(made, name="three", home=tmp_path, partitions=3, workers=1) as three,
    ):
        for n in range(10, 13):
            for typed in ("ab {}", "AB{}", "aB-{}", "ab-{}", "AB_{}", "Ab {}"):
                expected, results = (
                    index.search(typed.format(n), ranker="bm25", match="all")
                    for index in (one, three)
                )
                assert results.interpretation.id == expected.interpretation.id
                assert (results.total, results[0].id) == (expected.total, expected[0].id)


def test_suggestions_are_those_of_all_documents(one, four):
    for typed in ("eng", "gear b", "turbine ", "valida", "engnie", "Pri", "zzz"):
        assert four.suggest(typed) == one.suggest(typed)
        assert len(four.suggest(typed, 3)) <= 3


def test_answers_of_all_partitions_are_found_once_in_a_state(four, monkeypatch):
    rounds = []
    begin = LocalSearches.begin

    def counted(searches, requests):
        rounds.append(1)
        return begin(searches, requests)

    monkeypatch.setattr(LocalSearches, "begin", counted)
    for query in ("engnie gearbox", "validaton presure", '"gear box" engine'):
        first = found(four, query)
        asked = len(rounds)
        assert found(four, query) == first
        assert len(rounds) <= asked + 1
        rounds.clear()


def test_a_query_is_parsed_once_in_a_process(four, monkeypatch):
    parsed = []
    parse = QueryParser.parse

    def counted(parser, query, *args, **options):
        parsed.append(query)
        return parse(parser, query, *args, **options)

    monkeypatch.setattr(QueryParser, "parse", counted)
    for query in ("gear box printers", "wireless coolants gearboxes", "piston turbine"):
        found(four, query)
    assert parsed == ["gear box printers", "wireless coolants gearboxes", "piston turbine"]
    found(four, "+piston cooling")  # has a mask, of the documents of a partition
    assert len(parsed) >= 3 + 4
