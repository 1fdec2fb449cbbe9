"""Mining by vectors, and by the sum of words and vectors."""

from importlib import import_module

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection.vectors import quantised
from klsa_search.errors import QueryError
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, dot_products, scales_of
from klsa_search.mining import classify, cluster, document_map, duplicates, similar
from klsa_search.mining.similar import document_coordinates
from tests.support.worlds import topic_documents

TOPICS, KINDS, EACH = 4, 3, 12
"""Document d is of topic d % 4 by its words, and of kind d // 4 % 3 by its vector."""
LATER = 36
GONE = ("d4", "d17", "d40")
WITHOUT = ("d8", "d31")
SEVERAL = ("d6", "d45")
KERNELS = ("vectors:m", "sum:m")


def kind_of(number):
    return number // TOPICS % KINDS


def texts():
    ordered = topic_documents(TOPICS, EACH)
    return [ordered[n % TOPICS * EACH + n // TOPICS] for n in range(TOPICS * EACH)]


def vectors_of(number):
    rng = np.random.default_rng(number)
    middle = np.random.default_rng(1000 + kind_of(number)).normal(size=6)
    count = 3 if f"d{number}" in SEVERAL else 1
    return (middle + 0.3 * rng.normal(size=(count, 6))).tolist()


def record(number, text):
    vectors = None if f"d{number}" in WITHOUT else {"m": vectors_of(number)}
    return {"id": f"d{number}", "text": text, "topic": number % TOPICS, "_vectors": vectors}


@pytest.fixture(scope="module", params=[1, 2, 4])
def index(request, tmp_path_factory):
    """Return an index of which documents were added and deleted after the build."""
    records = [record(n, text) for n, text in enumerate(texts())]
    home = tmp_path_factory.mktemp("home")
    divided = {} if request.param == 1 else {"partitions": request.param, "workers": 1}
    index = build(records[:LATER], name="a", home=home, latent_dimensions=4, **divided)
    index.add(records[LATER:])
    index.add([{"id": "wordless", "text": "", "_vectors": {"m": vectors_of(0)}}])
    index.delete(GONE)
    yield index
    index.close()


def rows_of(index):
    return index.arrays.rows_of(index.doc_ids(index.ids()))


def expected_coordinates(index, kernel):
    """Return the unit coordinates of documents by ID, by their definition."""
    latent = np.asarray(index.arrays.latent.documents, np.float64)
    parts = {}
    for id_, row in zip(index.ids(), rows_of(index), strict=True):
        rows = np.zeros((1, 6))
        if id_ not in WITHOUT:
            rows = quantised(vectors_of(0 if id_ == "wordless" else int(id_[1:]))).astype(float)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        mean = rows.sum(axis=0)
        vector = quantised(mean)[0] if mean.any() else mean
        vector = vector / (np.linalg.norm(vector) or 1)
        both = np.append(latent[row], vector) if kernel == "sum:m" else vector
        parts[id_] = both / (np.linalg.norm(both) or 1)
    return parts


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("restricted", [False, True])
def test_similar_documents_are_those_with_the_largest_products(index, kernel, restricted):
    points = expected_coordinates(index, kernel)
    view = index.restricted("topic != 3") if restricted else index
    there = set(view.ids())
    for id_ in ("d0", "d6", "d8", "d37", "wordless"):
        scores = {o: points[id_] @ points[o] for o in there - {id_}}
        hits = similar(view, id_, 60, kernel=kernel)
        assert {h.id for h in hits} >= {o for o in scores if scores[o] > 0.01}
        for hit in hits:
            assert hit.score == pytest.approx(scores[hit.id], abs=0.01)
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
        assert similar(view, id_, 3, kernel=kernel) == hits[:3]


@pytest.mark.parametrize("kernel", KERNELS)
def test_coordinates_have_length_1_and_the_products_of_the_kernel(index, kernel):
    found = document_coordinates(index, kernel)
    lengths = np.linalg.norm(found, axis=1)
    assert np.all((lengths == 0) | (abs(lengths - 1) < 0.01))
    expected = expected_coordinates(index, kernel)
    for id_, row in zip(index.ids(), rows_of(index), strict=True):
        assert found[row] == pytest.approx(expected[id_], abs=0.01)


def test_vectors_and_words_each_find_their_own_groups(index):
    for kernel, group in (("vectors:m", KINDS), ("latent", TOPICS)):
        found = cluster(index, group, kernel=kernel)
        for each in found.clusters:
            numbers = [int(id_[1:]) for id_ in each.central if id_ != "wordless"]
            kinds = {n % TOPICS if kernel == "latent" else kind_of(n) for n in numbers}
            assert len(kinds) == 1
        missing = set(WITHOUT) if kernel == "vectors:m" else {"wordless"}
        assert set(found.unplaced) == missing
    both = cluster(index, KINDS * TOPICS, kernel="sum:m")
    assert both.unplaced == ()
    assert sum(each.size for each in both.clusters) == len(index)


def test_labels_follow_vectors_words_or_both(index):
    kinds = {f"d{n}": f"kind {kind_of(n)}" for n in range(12, 24) if n != 17}
    for kernel in KERNELS:
        found = {one.id: one.label for one in classify(index, kinds, kernel=kernel)}
        assert found.keys() == set(index.ids()) - kinds.keys()
        known = found.keys() - {"wordless", *WITHOUT}
        right = np.mean([found[id_] == f"kind {kind_of(int(id_[1:]))}" for id_ in known])
        assert right > (0.99 if kernel == "vectors:m" else 0.8)
    (one,) = classify(index, kinds, ["d8"], kernel="vectors:m")
    assert list(one.scores.values()) == pytest.approx([4 / 11, 3 / 11, 4 / 11])  # their shares


def test_the_map_places_documents_with_vectors(index):
    drawn = document_map(index, kernel="vectors:m")
    assert len(drawn) == len(index) - len(WITHOUT)
    assert drawn.unplaced == len(WITHOUT)
    numbers = np.array([0 if i == "wordless" else int(i[1:]) for i in index.ids(drawn.doc_ids)])
    same = kind_of(numbers)[:, None] == kind_of(numbers)
    apart = np.linalg.norm(drawn.positions[:, None] - drawn.positions, axis=2)
    np.fill_diagonal(apart, np.inf)
    assert same[np.arange(len(numbers)), apart.argmin(axis=1)].mean() > 0.9
    assert len(document_map(index, kernel="sum:m")) == len(index)
    np.testing.assert_array_equal(
        document_map(index, kernel="vectors:m").positions, drawn.positions
    )


def test_duplicates_by_vectors_are_near_the_first_of_their_group(index):
    points = expected_coordinates(index, "vectors:m")
    ids = [id_ for id_ in index.ids() if id_ not in WITHOUT]
    for least in (0.8, 0.97):
        first_of = {}
        for at, id_ in enumerate(ids):
            leads = [o for o in ids[:at] if o not in first_of and points[o] @ points[id_] >= least]
            if leads:
                first_of[id_] = leads[0]
        groups = duplicates(index, least, kernel="vectors:m")
        assert {
            one.id: group.documents[0].id for group in groups for one in group.documents[1:]
        } == first_of
        for group in groups:
            for one in group.documents[1:]:
                product = points[one.id] @ points[group.documents[0].id]
                assert one.similarity == pytest.approx(product, abs=1e-5)


def test_blocks_change_no_duplicates(index, monkeypatch):
    whole = duplicates(index, 0.9, kernel="vectors:m")
    monkeypatch.setattr(import_module("klsa_search.mining.duplicates"), "BLOCK", 5)
    assert duplicates(index, 0.9, kernel="vectors:m") == whole


def test_duplicates_by_the_sum_need_both(index):
    text = index.document("d0").text
    copies = [
        {"id": "same", "text": text, "_vectors": {"m": vectors_of(0)}},
        {"id": "other", "text": text, "_vectors": {"m": [-x for x in vectors_of(0)[0]]}},
        {"id": "none", "text": text},
    ]
    index.add(copies)
    try:
        by_words = duplicates(index, 0.95)
        assert {one.id for one in by_words[0].documents} == {"d0", "same", "other", "none"}
        (group,) = duplicates(index, 0.95, kernel="sum:m")
        assert {one.id for one in group.documents} == {"d0", "same"}
        group = duplicates(index, 0.7, kernel="sum:m")[0]
        similarities = {one.id: one.similarity for one in group.documents}
        assert similarities["none"] == pytest.approx(0.5**0.5, abs=1e-3)
    finally:
        index.delete([one["id"] for one in copies])


def test_unknown_kernels_and_spaces_are_named(index):
    for operation in (
        lambda kernel: similar(index, "d0", kernel=kernel),
        lambda kernel: duplicates(index, kernel=kernel),
        lambda kernel: cluster(index, 2, kernel=kernel),
        lambda kernel: document_map(index, kernel=kernel),
        lambda kernel: classify(index, {"d0": "a", "d1": "b"}, kernel=kernel),
    ):
        for wrong in ("vectors:other", "cosine", "sum:", 3):
            with pytest.raises(QueryError, match=r"vectors:m, sum:m") as refused:
                operation(wrong)
            assert refused.value.field == "kernel"


def test_vectors_that_cancel_out_are_left_out():
    rows = quantised([[1, 2], [-1, -2], [2, 1], [1, 0], [0, 1]])
    part = VectorRows(rows, np.array([0, 0, 3, 4, 4], np.int32), scales_of(rows))
    space = VectorSpace("m", 2, (part,)).one_per_document()
    assert space.merged().documents.tolist() == [3, 4]
    assert space.merged().rows.tolist() == [[127, 64], [127, 127]]
    assert space.vector(0) is None
    assert space.has(5).tolist() == [False, False, False, True, True]
    empty = VectorSpace("m", 2, ()).one_per_document()
    assert empty.merged().rows.shape == (0, 2)
    assert empty.coordinates(2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("dimension", [3, 1500])
def test_products_are_those_of_integers(dimension):
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-127, 128, (n, dimension), np.int8) for n in (4, 5))
    expected = left.astype(np.int64) @ right.astype(np.int64).T
    np.testing.assert_array_equal(dot_products(left, right), expected.astype(np.float32))
