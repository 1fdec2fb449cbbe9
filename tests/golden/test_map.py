"""MAP of the test collections changes on purpose only."""

import json

import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.evaluation.measures import Judge, rank_best
from tools.golden import precision
from tools.golden.__main__ import STORED

FIGURES = json.loads((STORED / "map.json").read_text())


@pytest.fixture
def measured(request, collections_home, monkeypatch):
    """The figures of a collection; its indexes are built outside the limit for a test."""
    monkeypatch.setattr(precision, "ROOT", collections_home)
    if request.param not in precision.collections():
        pytest.skip(f"the collection {request.param} is not in {collections_home / 'more'}")
    return precision.measured(request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "measured"),
    [(name, name) for name in FIGURES],
    indirect=["measured"],
    ids=FIGURES,
)
def test_map_equals_the_stored_figures(name, measured):
    assert measured == FIGURES[name], "if on purpose: python -m tools.golden map --write"


def test_figures_of_all_collections_are_stored(collections_home, monkeypatch):
    monkeypatch.setattr(precision, "ROOT", collections_home)
    assert set(precision.collections()) == set(FIGURES)


@pytest.mark.slow
def test_the_published_method_on_cran_in_its_own_protocol(collections_home, tmp_path):
    """[KLSA section 4]: at α = .9 MAP falls as z grows, and z = 1 is well above BM25."""

    def mean(target, **parameters):
        collection = open_collection(target, data=collections_home)
        judge = Judge(collection.judgements(), measures=("map",))
        run = rank_best(index, judge.judged(collection.queries()), **parameters)
        return judge.measure(run).means()["map"]

    cran = open_collection("cran", data=collections_home)
    with build(cran, name="cran", home=tmp_path, preset="paper") as index:
        at = [mean("cran-1837", z=z) for z in (1, 5, 10, 20, 50)]
        assert at == sorted(at, reverse=True)
        assert at[0] / mean("cran-1837", ranker="bm25") - 1 >= 0.08
        for alpha in (0.7, 1.0):
            assert mean("cran-1837", z=1, alpha=alpha) < at[0]
        assert mean("cran") / mean("cran", alpha=0.0) >= 1.08
