"""Each experiment, with a fixed seed and few splits, runs and shows the expected direction."""

import json
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from klsa_search.collection import Document, open_collection
from klsa_search.errors import CollectionError
from studies.datasets import (
    LabelledPoints,
    Story,
    find_dataset,
    read_ionosphere,
    read_reuters,
)
from studies.reproduce.diffusion import reproduce_diffusion
from studies.reproduce.ionosphere import reproduce_ionosphere
from studies.reproduce.medline import reproduce_medline
from studies.reproduce.reuters import reproduce_reuters

pytestmark = pytest.mark.slow


def means(done, task, measure=None):
    """Method, without what follows its comma → mean."""
    return {
        row.method: row.measured.mean
        for row in done.rows
        if row.task == task and measure in (None, row.measure)
    }


def best(found, method):
    return next(mean for name, mean in found.items() if name.startswith(f"{method}, best"))


def test_ionosphere_of_few_splits(datasets_home):
    points = read_ionosphere(find_dataset("ionosphere", [datasets_home]))
    told = []
    few = {"splits": 10, "degrees": (2,), "dimensions": (10, 40)}
    done = reproduce_ionosphere(points, **few, progress=lambda *news: told.append(news))
    assert told[-1] == ("splits", 20, 20)
    found = means(done, "degree 2, C = 1")
    assert best(found, "LSK") < found["full space, C = 1"]
    assert 0.013 <= best(found, "LSK") <= 0.085  # the published .049, within its deviation
    again = reproduce_ionosphere(points, **few)
    assert json.dumps(again.as_json()) == json.dumps(done.as_json())


@pytest.fixture(scope="module")
def some_of_med(collections_home):
    """What is relevant to queries 20 and 23, and every fourth of the other documents of med."""
    med = open_collection("med", data=collections_home)
    relevant = {j.document_id for j in med.judgements() if j.query_id in ("20", "23")}
    documents = [
        document
        for number, document in enumerate(med.documents())
        if document.id in relevant or number % 4 == 0
    ]
    return SimpleNamespace(name="med", documents=lambda: documents, judgements=med.judgements)


def test_medline_of_some_documents(some_of_med):
    done = reproduce_medline(some_of_med, splits=2, degrees=(1,), dimensions=(10, 50, 100, 200))
    tasks = list(dict.fromkeys(row.task for row in done.rows))
    assert tasks == [
        f"query {query}, degree 1, {origin}"
        for query in ("23", "20")
        for origin in ("corpus", "training")
    ]
    for query in ("20", "23"):
        found = means(done, f"query {query}, degree 1, corpus")
        full = next(mean for name, mean in found.items() if name.startswith("full"))
        assert best(found, "LSK") > full
        assert best(found, "GSK") > full


def test_reuters_of_some_stories(datasets_home):
    stories = read_reuters(find_dataset("reuters21578", [datasets_home]))
    done = reproduce_reuters(
        islice(stories, 1500), splits=1, sizes=(300, 200), dimensions=(20, 100)
    )
    found = means(done, "mean of 5")
    assert found["full space"] > 0.4
    assert best(found, "LSK") > found["full space"] - 0.1
    assert [row.task for row in done.rows[5::5]] == ["earn", "acq", "money-fx", "grain", "crude"]


def test_diffusion_on_some_documents(some_of_med):
    done = reproduce_diffusion(some_of_med, splits=2, shares=(20,))
    for weights in ("as they are", "unit length"):
        aligned = means(done, f"20 % to train, {weights}", "alignment")
        bag, neumann, exponential = aligned.values()
        assert bag < min(neumann, exponential)
        bag, _, exponential = means(done, f"20 % to train, {weights}", "F1").values()
        assert exponential > bag
    scaled = means(done, "20 % to train, unit length, K̂ too", "alignment")
    assert len(scaled) == 2  # a bag of words of unit length has it already
    assert min(scaled.values()) > max(aligned.values())
    for row in done.rows:
        if row.measure == "λ" and "unit length" in row.task and "Neumann" in row.method:
            assert 0.01 < row.measured.mean < 0.3  # below 1 / λ_1, which is above 3
    assert [chart.name for chart in done.charts] == [
        "diffusion-von-neumann",
        "diffusion-exponential",
    ]


def test_diffusion_without_rare_terms_on_stratified_splits(some_of_med):
    plain = reproduce_diffusion(some_of_med, splits=2, shares=(20,), stratified=True)
    done = reproduce_diffusion(some_of_med, splits=2, shares=(20,), stratified=True, min_df=5)
    task = "20 % to train, unit length"
    with_them, without = (means(d, task, "alignment").values() for d in (plain, done))
    assert all(np.array(list(without)) > list(with_them))  # rare words tell documents apart
    assert "Terms: those of at least 5 documents." in done.choices
    assert any("same share of relevant documents" in choice for choice in done.choices)


def test_too_few_stories():
    story = Story("1", "corn", "", ("grain",), "train")
    with pytest.raises(CollectionError, match=r"1 stories .* 3000 are needed"):
        reproduce_reuters([story])


def test_a_collection_without_the_queries():
    with pytest.raises(CollectionError, match="query 20 has no relevant documents"):
        reproduce_diffusion(open_collection([Document(id="1", text="heat")]))


def test_separable_classes_have_no_errors():
    """One direction tells the classes apart, so that no machine errs in it."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(60, 34)) * 0.1
    values[:, 0] += np.where(np.arange(60) < 40, 3, -3)
    points = LabelledPoints(values, ("g",) * 40 + ("b",) * 20)
    done = reproduce_ionosphere(points, splits=2, degrees=(1,))
    assert all(row.measured.mean == 0 for row in done.rows if "C = 1" in row.task)
