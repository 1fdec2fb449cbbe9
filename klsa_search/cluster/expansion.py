"""Compute the sparse expansion matrix by shards.

Postings are truncated by ranges of features, over all documents, and joined for each shard. Then
each shard finds its rows by searching the postings of one shard after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.cluster.document_kernel import Part, kernel_of, range_of
from klsa_search.cluster.work import StepResult, Work, map_array, read_facts, save
from klsa_search.core.array_types import Eigenvalues, narrow_indptr
from klsa_search.kernels.candidates import TruncatedPostings, truncate_postings
from klsa_search.kernels.nearest_neighbours import (
    DocumentFeatures,
    KnnParams,
    KnnSearcher,
    empty_rows,
    rows_to_csr,
)
from klsa_search.lowrank.latent_space import (
    LatentSpace,
    document_coordinates,
    scaled_sums,
    sum_in_order,
    term_coordinates,
)
from klsa_search.lowrank.products import to_features
from klsa_search.lowrank.sparse_expansion import (
    SparseExpansion,
    packed_terms,
    sparse_expansion_arrays,
)
from klsa_search.storage.arrays import ArrayWriter, write_arrays

_CHUNK = 8192  # rows that are searched for at a time
_NAMES = ("starts", "documents", "values")


def strongest_rows(
    work: Work, parts: Sequence[Part], ranges: int, *, features: int, entries: int
) -> list[StepResult]:
    """Find the `entries` strongest of each row, as `kernels.nearest_neighbours` does, by shards.

    The folders have the rows in `starts`, `columns` and `values`.
    Cost O(N), and each shard reads the features and postings of all others.
    """
    cut = work.make(
        _cut,
        *(
            {"parts": parts, "number": number, "cut": KnnParams().documents_per_feature}
            for number in range(ranges)
        ),
    )
    postings = work.make(_joined, *({"ranges": cut, "part": i} for i in range(len(parts))))
    starts = work.one(_starts, ranges=cut)
    work.empty(*cut)
    found = work.make(
        _found,
        *(
            {
                "parts": parts,
                "own": own,
                "postings": postings,
                "starts": starts,
                "features": features,
                "entries": entries,
            }
            for own in range(len(parts))
        ),
    )
    work.empty(*postings, starts)
    return found


def _cut(out: Path, *, parts: Sequence[Part], number: int, cut: int) -> None:
    """Step: truncate the postings of a range of features, and divide them by shards."""
    blocks, width = [], 0
    for part in parts:
        starts, columns, weights = range_of(part, number)
        width = _width(parts, number)
        shape = (part["documents"], width)
        blocks.append(sparse.csr_array((weights, columns, starts), shape=shape))
    features = blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")
    del blocks
    scales = np.concatenate([map_array(part["kernel"], "posting_scales") for part in parts])
    whole, documents, values = truncate_postings(sparse.csr_array(features), scales, cut)
    save(out, starts=whole)
    for i, part in enumerate(parts):
        first = part["first"]
        here = (documents >= first) & (documents < first + part["documents"])
        starts = np.concatenate(([0], np.cumsum(here)))[whole]
        own = starts, documents[here] - np.int32(first), values[here]
        save(out, **{f"part{i}_{name}": array for name, array in zip(_NAMES, own, strict=True)})


def _width(parts: Sequence[Part], number: int) -> int:
    edges = read_facts(parts[0]["kernel"])["edges"]
    return int(edges[number + 1] - edges[number])


def _joined(out: Path, *, ranges: Sequence[StepResult], part: int) -> None:
    """Step: join the postings of a shard, of all features."""
    arrays: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for each in ranges:
        for name, some in arrays.items():
            some.append(map_array(each, f"part{part}_{name}"))
    starts = _end_to_end(arrays.pop("starts"))
    save(out, starts=starts, **{name: np.concatenate(some) for name, some in arrays.items()})


def _starts(out: Path, *, ranges: Sequence[StepResult]) -> None:
    """Step: write the starts of the postings of each feature, over all shards."""
    save(out, starts=_end_to_end([map_array(each, "starts") for each in ranges]))


def _end_to_end(starts: Sequence[Any]) -> Any:
    sizes = np.concatenate([np.diff(some) for some in starts])
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _found(
    out: Path, *, parts: Sequence[Part], own: int, postings: Sequence[StepResult],
    starts: StepResult, features: int, entries: int,
) -> None:  # fmt: skip
    """Step: find the rows of a shard by chunks: candidates of all shards, then values of K."""
    first, size = parts[own]["first"], parts[own]["documents"]
    mine, of_feature = _rows(parts[own]), map_array(starts, "starts")
    most = max(part["documents"] for part in parts)
    searcher = KnnSearcher(KnnParams(), min(_CHUNK, size), most, features, mine.longest)
    rows = empty_rows(size, entries)
    for begin in range(0, size, _CHUNK):
        documents = np.arange(first + begin, first + min(begin + _CHUNK, size))
        searcher.start(documents, mine, of_feature)
        for part, some in zip(parts, postings, strict=True):
            searcher.add_postings(part["first"], _postings(some))
        for part in parts:
            searcher.score(_rows(part))
        searcher.write_rows(rows, begin)
    last = parts[-1]["first"] + parts[-1]["documents"]
    found = rows_to_csr(rows, np.arange(size), (size, last))
    save(out, starts=found.indptr, columns=found.indices, values=found.data)


def _postings(made: StepResult) -> TruncatedPostings:
    starts, documents, values = (map_array(made, name) for name in _NAMES)
    return starts, documents, values


def _rows(part: Part) -> DocumentFeatures:
    """Return the features of a shard, memory-mapped."""
    kernel: StepResult = part["kernel"]
    starts, weights = map_array(kernel, "starts"), map_array(kernel, "weights")
    columns = map_array(part["features"], "features_columns")
    scales, towards_mean = (np.ascontiguousarray(some) for some in map_array(kernel, "centring").T)
    square = np.float32(read_facts(kernel)["mean_square"])
    weights = weights.astype(np.float32, copy=False)
    return DocumentFeatures(
        part["first"], (narrow_indptr(starts), columns, weights), (scales, towards_mean, square)
    )


def packed(
    work: Work,
    parts: Sequence[Part],
    whole: StepResult,
    *,
    vectors: Sequence[StepResult],
    values: Eigenvalues,
    strongest: Sequence[StepResult],
    entries: int,
    term_weights: npt.NDArray[np.float64],
    edges: Sequence[int],
) -> tuple[list[StepResult], list[StepResult]]:
    """Pack the rows of each shard, and the terms of each range of features.

    vectors  eigenvectors (N, k) in pieces; the first m, with `values` (m,), span the latent space
    """
    m = len(values)
    calls = [
        {"part": part, "vectors": some, "dimensions": m}
        for part, some in zip(parts, vectors, strict=True)
    ]
    sums = work.make(_scaled, *calls)
    scaled = sum_in_order((row for each in sums for row in map_array(each, "sums")), m)
    V = len(term_weights)
    terms = work.make(
        _terms,
        *(
            {
                "parts": parts,
                "vectors": vectors,
                "whole": whole,
                "number": number,
                "first": first,
                "size": last - first,
                "scaled": scaled,
                "values": values,
                "term_weights": term_weights[first:last],
            }
            for number, (first, last) in enumerate(pairwise(edges))
            if first < V or number == 0
        ),
    )
    rows = work.make(
        _packed_rows,
        *(
            {
                "part": part,
                "whole": whole,
                "vectors": of_part,
                "values": values,
                "strongest": some,
                "entries": entries,
            }
            for part, of_part, some in zip(parts, vectors, strongest, strict=True)
        ),
    )
    return rows, terms


def _scaled(out: Path, *, part: Part, vectors: StepResult, dimensions: int) -> None:
    sums = scaled_sums(map_array(part["kernel"], "scales"), _first(vectors, dimensions))
    save(out, sums=np.array(sums).reshape(len(sums), dimensions))


def _first(vectors: StepResult, dimensions: int) -> npt.NDArray[Any]:
    return np.ascontiguousarray(map_array(vectors, "vectors")[:, :dimensions])


def _terms(
    out: Path, *, parts: Sequence[Part], vectors: Sequence[StepResult], whole: StepResult,
    number: int, first: int, size: int, scaled: npt.NDArray[np.float64], values: Eigenvalues,
    term_weights: npt.NDArray[np.float64],
) -> None:  # fmt: skip
    """Step: write the latent coordinates of the terms of a range of features; pairs have none."""
    precision = map_array(vectors[0], "vectors").dtype
    T = np.zeros((size, len(values)), precision)
    for part, some in zip(parts, vectors, strict=True):
        starts, columns, weights = range_of(part, number)
        U = _first(some, len(values))
        to_features(columns, weights, starts[:-1], starts[1:], U, T)
    terms = len(term_weights)
    mean = map_array(whole, "mean")[first : first + terms]
    places = term_coordinates(T[:terms], mean, scaled, values, term_weights)
    save(out, terms=packed_terms(places))


def _packed_rows(
    out: Path, *, part: Part, whole: StepResult, vectors: StepResult, values: Eigenvalues,
    strongest: StepResult, entries: int,
) -> None:  # fmt: skip
    kernel = kernel_of(part, whole)
    places = document_coordinates(_first(vectors, len(values)), values)
    starts, columns, found = (
        map_array(strongest, name) for name in ("starts", "columns", "values")
    )
    N = max(part["first"] + part["documents"], columns.max(initial=-1) + 1)
    cut = SparseExpansion.of(
        kernel,
        sparse.csr_array((found, columns, starts), shape=(part["documents"], N)),
        LatentSpace(places, np.zeros((0, len(values)), np.float32)),
        entries,
        first=part["first"],
        ranks=map_array(whole, "ranks"),
    )
    arrays = sparse_expansion_arrays(cut)
    del arrays["cut_terms"]
    save(out, **arrays)


def joined(
    out: Path, *, rows: Sequence[StepResult], terms: Sequence[StepResult], eigenvalues: Eigenvalues,
    vectors: Sequence[StepResult] | None,
) -> None:  # fmt: skip
    """Step: write the files of a generation, with one piece of an array in memory at a time.

    vectors  pieces of the eigenvectors, if they are stored
    """
    for name in ("cut_rows", "cut_scales", "cut_cards", "cut_features"):
        _join(out, name, (map_array(some, name) for some in rows))
    _join(out, "cut_starts", _moved(rows))
    _join(out, "cut_terms", (map_array(some, "terms") for some in terms))
    write_arrays(out, {"cut_mean": map_array(rows[0], "cut_mean"), "eigenvalues": eigenvalues})
    if vectors is not None:
        U = np.concatenate([map_array(some, "vectors") for some in vectors])
        write_arrays(out, {"eigenvectors": U.astype(np.float32)})


def _join(out: Path, name: str, pieces: Iterator[npt.NDArray[Any]]) -> None:
    first = next(pieces)
    columns = first.shape[1] if first.ndim == 2 else None
    with ArrayWriter(out, name, first.dtype, columns) as writer:
        for piece in chain([first], pieces):
            if len(piece):
                writer.append(piece)


def _moved(rows: Sequence[StepResult]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the starts of the features of each document, with each piece shifted."""
    end = 0
    yield np.zeros(1, np.int64)
    for some in rows:
        starts = map_array(some, "cut_starts") + end
        end = starts[-1]
        yield starts[1:]
