import numpy as np
import pytest

from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.mining import KERNELS
from klsa_search.mining.similar import similar

from .conftest import topic_of


@pytest.mark.parametrize("kernel", ["document", "gvsm", "latent"])
def test_a_copy_comes_first_and_its_topic_next(index, kernel):
    hits = similar(index, "d5", 5, kernel=kernel)
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert all(topic_of(hit.id) == 0 for hit in hits)
    copy = next(hit for hit in hits if hit.id == "d48")
    assert copy.score == pytest.approx(1, abs=0.02)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert "d5" not in {hit.id for hit in hits}


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_do_not_depend_on_the_stored_arrays(indexes, kernel):
    one, other = (
        similar(indexes[name], "d20", 6, kernel=kernel) for name in ("small", "squashing")
    )
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], rel=0.02)


def test_a_stored_row_is_the_row_up_to_its_rounding(indexes):
    exact = {hit.id: hit.score for hit in similar(indexes["small"], "d20", 48, kernel="document")}
    for hit in similar(indexes["large"], "d20", 48, kernel="document"):
        assert hit.score == pytest.approx(exact[hit.id], abs=0.01)


def test_entries_are_those_of_the_kernel(index):
    kernel = index.arrays.kernel.explicit()
    documents = np.array([20, 3, 4, 40, 48])
    some = index.arrays.sparse_expansion.kernel_of(documents)
    assert some.explicit() == pytest.approx(kernel[np.ix_(documents, documents)], abs=1e-6)


@pytest.mark.parametrize("kernel", ["document", "latent"])
def test_an_empty_document_is_like_no_other(index, kernel):
    assert similar(index, "d49", kernel=kernel) == ()


def test_a_snippet_shows_what_is_shared(index):
    (hit,) = similar(index, "d5", 1)
    assert set(hit.snippet.split()) & set(index.document("d5").text.split())


def test_bad_input_is_named(index, indexes):
    with pytest.raises(DocumentNotFound, match="no document 'nope'"):
        similar(index, "nope")
    for field, arguments in (
        ("k", {"k": 0}),
        ("k", {"k": True}),
        ("kernel", {"kernel": "cosine"}),
    ):
        with pytest.raises(QueryError) as refused:
            similar(index, "d1", **arguments)
        assert refused.value.field == field
    with pytest.raises(QueryError, match="gamma"):
        similar(indexes["small"], "d1", kernel="von-neumann", gamma=1.0)
    entries = indexes["large"].arrays.sparse_expansion.entries
    for field, arguments, next_step in (
        ("kernel", {"kernel": "truncation"}, "rebuild it with --spectral truncation"),
        ("k", {"k": entries + 1, "kernel": "document"}, "use fewer"),
    ):
        with pytest.raises(QueryError, match=next_step) as refused:
            similar(indexes["large"], "d1", **arguments)
        assert refused.value.field == field
