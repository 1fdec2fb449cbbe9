"""Exploring an index in partitions, compared with the same documents in one."""

import numpy as np
import pytest

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.mining import (
    classify,
    classify_texts,
    cluster,
    document_map,
    duplicates,
    expansion_rows,
    kernel_rows,
    related,
    similar,
    spectrum,
    strongest_terms,
)
from klsa_search.mining import map as maps
from klsa_search.mining.synonym_proposals import SearchedQuery, propose_synonyms
from tests.support.worlds import as_if_large, topic_documents

TEXTS = topic_documents(4, 30, seed=3)


def records(begin: int = 0, end: int = len(TEXTS)):
    """Return documents of four topics by turns, each with a word of its own, and some copies."""
    ordered = [TEXTS[n % 4 * 30 + n // 4] for n in range(len(TEXTS))]
    return [
        {"id": f"d{n}",
         "text": ordered[n - n % 20] if n % 20 in (0, 7) else f"{ordered[n]} own{n}",
         "even": "yes" if n % 2 == 0 else "no"}
        for n in range(begin, end)
    ]  # fmt: skip


@pytest.fixture(scope="module", params=["built", "written"])
def pair(request, tmp_path_factory):
    """Return indexes of the same documents, in one partition and in three."""
    end = len(TEXTS) if request.param == "built" else 90
    with as_if_large():
        one, three = (
            build(
                records(0, end), name=str(partitions), home=tmp_path_factory.mktemp("home"),
                latent_dimensions=4,
                **({} if partitions == 1 else {"partitions": partitions, "workers": 1}),
            )
            for partitions in (1, 3)
        )  # fmt: skip
    if request.param == "written":
        for index in (one, three):
            for begin in range(90, len(TEXTS), 10):  # in the order of both
                index.add(records(begin, begin + 10))
            index.delete(["d3", "d93", "d94"])
    yield one, three
    one.close()
    three.close()


def in_id_order(index, rows):
    """Return the columns of rows of matrices in the order of the sorted IDs."""
    return rows[:, index.arrays.rows_of(index.doc_ids(sorted(index.ids())))]


@pytest.mark.parametrize("view", [None, "even = yes"])
def test_terms_are_those_of_one_index(pair, view):
    one, three = pair if view is None else (index.restricted(view) for index in pair)
    for word in ("a1", "b2 c3", "own8"):
        ours, theirs = related(three, word, 20), related(one, word, 20)
        assert {term.term for term in ours[:12]} == {term.term for term in theirs[:12]}
        assert [term.similarity for term in ours] == pytest.approx(
            [term.similarity for term in theirs], abs=2e-3
        )
    for id_ in ("d8", "d100", "d118"):
        ours, theirs = strongest_terms(three, id_, 50), strongest_terms(one, id_, 50)
        assert [term.term for term in ours] == [term.term for term in theirs]
        assert ours == theirs


@pytest.mark.parametrize("view", [None, "even = yes"])
@pytest.mark.parametrize("kernel", ["latent", "document"])
def test_similar_documents_are_those_of_one_index(pair, kernel, view):
    one, three = pair if view is None else (index.restricted(view) for index in pair)
    if kernel == "document" and pair[1].drift.added:
        return  # later documents are in rows of D of their partition only
    for id_ in ("d0", "d28", "d100", "d108"):
        ours, theirs = (similar(index, id_, 10, kernel=kernel) for index in (three, one))
        assert ours[0].score == pytest.approx(theirs[0].score, abs=0.02)
        near = {hit.id for hit in similar(one, id_, 40, kernel=kernel)}
        assert len(near & {hit.id for hit in ours}) >= 9


def test_matrices_are_those_of_one_index(pair):
    one, three = pair
    ids = ["d8", "d110", "d7"]
    for matrix in (kernel_rows, expansion_rows):
        ours, theirs = (in_id_order(index, matrix(index, ids)) for index in (three, one))
        np.testing.assert_allclose(ours, theirs, atol=0.02)
    ours, theirs = spectrum(three), spectrum(one)
    np.testing.assert_allclose(ours.eigenvalues, theirs.eigenvalues[: len(ours.eigenvalues)])
    assert ours.eigenvectors.shape == (three.max_doc, 0)


def test_duplicates_are_those_of_one_index(pair):
    one, three = pair
    ours, theirs = (
        [[document.id for document in group.documents] for group in duplicates(index)]
        for index in (three, one)
    )
    assert len(theirs) > 3
    assert sorted(map(sorted, ours)) == sorted(map(sorted, theirs))
    order = three.ids()
    for group in ours:
        assert group == sorted(group, key=order.index)


def test_clusters_and_labels_are_those_of_one_index(pair):
    one, three = pair
    ours, theirs = (cluster(index, 4) for index in (three, one))
    assert {frozenset(group.central) for group in ours.clusters} == {
        frozenset(group.central) for group in theirs.clusters
    }
    assert {frozenset(group.words) for group in ours.clusters} == {
        frozenset(group.words) for group in theirs.clusters
    }
    labels = {f"d{n}": "abcd"[n % 4] for n in (0, 1, 2, 4, 5, 6, 11, 15)}
    ours, theirs = (
        {found.id: found.label for found in classify(index, labels)} for index in (three, one)
    )
    assert ours == theirs
    texts = [record["text"] for record in records(20, 40)]
    ours, theirs = (
        [found.label for found in classify_texts(index, labels, texts)] for index in (three, one)
    )
    assert ours == theirs


def test_the_map_is_that_of_one_index(pair, monkeypatch):
    monkeypatch.setattr(maps, "DOCUMENTS_PER_CLUSTER", 6)  # so that there are four clusters
    one, three = pair
    ours, theirs = (document_map(index) for index in (three, one))
    assert sorted(three.ids(ours.doc_ids)) == sorted(one.ids(theirs.doc_ids))
    assert three.ids(ours.doc_ids) == [id_ for id_ in three.ids() if id_ in set(one.ids())]
    assert [group.size for group in ours.clusters] == [group.size for group in theirs.clusters]
    assert {frozenset(group.words) for group in ours.clusters} == {
        frozenset(group.words) for group in theirs.clusters
    }
    some = document_map(three, ids=["d110", "d8"])
    assert three.ids(some.doc_ids) == ["d8", "d110"]


def test_synonyms_are_proposed_by_all_partitions(pair):
    queries = [SearchedQuery("own999 a1", 5, {"a2 a1": 4})]
    ours, theirs = (propose_synonyms(index, queries) for index in reversed(pair))
    assert ours == theirs
    assert ours


def test_eigenvectors_of_all_documents_need_one_partition(pair):
    _, three = pair
    with pytest.raises(QueryError, match="one partition and --spectral squashing"):
        similar(three, "d8", kernel="squashing")
