"""Each experiment with a fixed seed and few splits: that it runs, and the direction it shows."""

import json

import numpy as np
import pytest

from klsa_search.collection import (
    Document,
    LabelledPoints,
    Story,
    find_dataset,
    open_collection,
    read_ionosphere,
    read_reuters,
)
from klsa_search.errors import CollectionError
from klsa_search.evaluation.reproduce import (
    reproduce_diffusion,
    reproduce_ionosphere,
    reproduce_medline,
    reproduce_reuters,
)


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
    done = reproduce_ionosphere(
        points, splits=4, degrees=(2,), progress=lambda *news: told.append(news)
    )
    assert told[-1] == ("splits", 8, 8)
    found = means(done, "degree 2, C = 1")
    assert best(found, "LSK") < found["full space, C = 1"]
    assert 0.013 <= best(found, "LSK") <= 0.085  # the published .049, within its deviation
    again = reproduce_ionosphere(points, splits=4, degrees=(2,))
    assert json.dumps(again.as_json()) == json.dumps(done.as_json())


def test_medline_of_few_splits(collections_home):
    med = open_collection("med", data=collections_home)
    done = reproduce_medline(med, splits=2, degrees=(1,), dimensions=(25, 100, 600))
    for query in ("20", "23"):
        found = means(done, f"query {query}, degree 1, corpus")
        full = found["full space, C = 100"]
        assert best(found, "LSK") > full
        assert best(found, "GSK") > full


def test_reuters_of_few_stories(datasets_home):
    stories = read_reuters(find_dataset("reuters21578", [datasets_home]))
    done = reproduce_reuters(stories, splits=1, sizes=(300, 200), dimensions=(20, 100))
    found = means(done, "mean of 5")
    assert found["full space"] > 0.5
    assert best(found, "LSK") > found["full space"] - 0.05
    assert [row.task for row in done.rows[5::5]] == ["earn", "acq", "money-fx", "grain", "crude"]


def test_diffusion_of_few_splits(collections_home):
    med = open_collection("med", data=collections_home)
    done = reproduce_diffusion(med, splits=2, shares=(20,))
    for weights in ("as they are", "unit length"):
        aligned = means(done, f"20 % to train, {weights}", "alignment")
        f1 = means(done, f"20 % to train, {weights}", "F1")
        bag, neumann, exponential = aligned.values()
        assert bag < 0.3 < 0.6 < min(neumann, exponential)
        bag, neumann, exponential = f1.values()
        assert exponential > neumann > bag
    assert [chart.name for chart in done.charts] == [
        "diffusion-von-neumann",
        "diffusion-exponential",
    ]


def test_too_few_stories():
    story = Story("1", "corn", "", ("grain",), "train")
    with pytest.raises(CollectionError, match="1 stories .* 3000 are needed"):
        reproduce_reuters([story])


def test_a_collection_without_the_queries():
    with pytest.raises(CollectionError, match="query 20 has no relevant documents"):
        reproduce_diffusion(open_collection([Document(id="1", text="heat")]))


def test_points_that_are_no_class_of_their_own():
    """One direction tells the classes apart, so that no machine errs in it."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(60, 34)) * 0.1
    values[:, 0] += np.where(np.arange(60) < 40, 3, -3)
    points = LabelledPoints(values, ("g",) * 40 + ("b",) * 20)
    done = reproduce_ionosphere(points, splits=2, degrees=(1,))
    assert all(row.measured.mean == 0 for row in done.rows if "C = 1" in row.task)
