"""A query means the same in all partitions of an index: corrections, prefixes, phrases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from klsa_search import Index, build

WORDS = [
    "engine",
    "engineer",
    "engineering",
    "valve",
    "validation",
    "validate",
    "pressure",
    "presser",
    "turbine",
    "turbulent",
    "coolant",
    "cooling",
    "wireless",
    "network",
    "networks",
    "gearbox",
    "gear",
    "box",
    "piston",
    "pistons",
    "printer",
    "printing",
    "Universität",
    "universities",
    "lubricant",
    "fuselage",
    "aileron",
    "rudder",
    "altimeter",
]

MISSPELT = [
    "engnie", "validaton presure", "netwrok turbien", "gerabox", "wirelessnetwork",
    "gearboxpiston", "lubrikant fuselage", "coolnat +pistn", "univresities", "printr engine",
    '"turbine coolnat"', '"fuselage rudder" altimetre', "alieron -ruder", "xyz piston",
]  # fmt: skip
"""Queries with words that no document contains."""

LAST = ["engin", "valida", "piston turb", "pres", "gear", "universit", "cooling net", "prin"]
"""Queries whose last word is being typed."""


def documents() -> list[dict[str, Any]]:
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
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with build(documents(), name="one", home=tmp_path_factory.mktemp("one")) as index:
        yield index


@pytest.fixture(scope="module", params=[None, 6], ids=["trained", "sampled"])
def four(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Index]:
    """Return an index whose training has all words, or lacks many of them."""
    home = tmp_path_factory.mktemp("four")
    with pytest.MonkeyPatch.context() as patched:
        if request.param is not None:
            patched.setattr("klsa_search.indexing.partitions.MOST", request.param)
        index = build(documents(), name="four", home=home, partitions=4, workers=1)
    with index:
        yield index


def found(index: Index, query: str, **options: Any) -> tuple[Any, list[tuple[float, str]]]:
    """Return interpretation and hits of a search, hits of equal scores by ID."""
    results = index.search(query, 1200, ranker="bm25", **options)
    hits = sorted((-hit.score, hit.id) for hit in results.hits)
    return results.interpretation, hits


@pytest.mark.parametrize("query", MISSPELT)
def test_misspelt_words_are_corrected_alike(one: Index, four: Index, query: str) -> None:
    for spelling in ("auto", "suggest"):
        assert found(four, query, spelling=spelling) == found(one, query, spelling=spelling)


@pytest.mark.parametrize("query", LAST)
def test_the_last_word_is_completed_alike(one: Index, four: Index, query: str) -> None:
    assert found(four, query, prefix="last") == found(one, query, prefix="last")


@pytest.mark.parametrize(
    "query",
    ['"gear box" engine', '"valve zebra" engine', '"piston valve coolant"', "turb* +engine*",
     "universit*", '"gear box" -"cooling network" rudder', "gear-box wire-less", '"rudder rudder"'],
)  # fmt: skip
def test_operators_match_alike(one: Index, four: Index, query: str) -> None:
    for match in ("any", "most", "all"):
        assert found(four, query, match=match) == found(one, query, match=match)


def test_an_id_is_found_among_its_words(one: Index, four: Index) -> None:
    for prefix in (None, "last"):
        assert found(four, "doc-7", prefix=prefix) == found(one, "doc-7", prefix=prefix)


@pytest.mark.parametrize("typed", ["eng", "gear b", "turbine ", "valida", "engnie", "Pri", "zzz"])
def test_suggestions_are_those_of_all_documents(one: Index, four: Index, typed: str) -> None:
    assert four.suggest(typed) == one.suggest(typed)
    assert len(four.suggest(typed, 3)) <= 3
