"""What the engine promises on the four collections; skipped where they are not at hand.

The figures are bars, not the values measured: `klsa-eval map` prints those.
"""

from __future__ import annotations

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.evaluation import Judge, rank_best

BM25 = {"cran": 0.32, "cran-1837": 0.44, "cisi": 0.24, "cacm": 0.38, "med": 0.54}
DEFAULT = {"cran": 0.375, "cran-1837": 0.5, "cisi": 0.283, "cacm": 0.42, "med": 0.68}
GAIN = {"cran": 0.15, "cran-1837": 0.12, "cisi": 0.15, "cacm": 0.1, "med": 0.22}
HURT = 0.25  # share of queries that may lose more than LOSS of average precision
LOSS = 0.01


@pytest.fixture(scope="module")
def precisions(collections_home, tmp_path_factory):
    """Average precision of every judged query: (target, preset, parameters) -> values."""
    home = tmp_path_factory.mktemp("promises")
    indexes = {}

    def measure(target, preset="default", **parameters):
        collection = open_collection(target, data=collections_home)
        documents = target.removesuffix("-1837")
        if (documents, preset) not in indexes:
            name = f"{documents}-{preset}"
            indexes[documents, preset] = build(collection, name=name, home=home, preset=preset)
        judge = Judge(collection.judgements())
        queries = [query for query in collection.queries() if query.id in judge.query_ids]
        run = rank_best(indexes[documents, preset], queries, **parameters)
        return np.array(judge.measure(run).values("map"))

    return measure


@pytest.mark.parametrize("target", BM25)
def test_map_of_bm25_and_of_the_default(precisions, target):
    bm25, klsa = precisions(target, ranker="bm25"), precisions(target)
    assert bm25.mean() >= BM25[target]
    assert klsa.mean() >= DEFAULT[target]
    assert klsa.mean() / bm25.mean() - 1 >= GAIN[target]
    assert (klsa < bm25 - LOSS).mean() <= HURT


def test_the_published_method_on_cran_in_its_own_protocol(precisions):
    """[KLSA section 4]: at α = .9 MAP falls as z grows, and z = 1 is well above BM25."""
    bm25 = precisions("cran-1837", "paper", ranker="bm25").mean()
    at = [precisions("cran-1837", "paper", z=z).mean() for z in (1, 5, 10, 20, 50)]
    assert at == sorted(at, reverse=True)
    assert at[0] / bm25 - 1 >= 0.08
    for alpha in (0.7, 1.0):
        assert precisions("cran-1837", "paper", z=1, alpha=alpha).mean() < at[0]
    assert (
        precisions("cran", "paper").mean() / precisions("cran", "paper", alpha=0.0).mean() >= 1.08
    )
