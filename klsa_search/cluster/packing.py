"""What a query reads of each shard, packed, and the files of a generation made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import Eigenvalues
from klsa_search.cluster.files import mapped, save
from klsa_search.cluster.kernels import Part, kernel_of, range_of
from klsa_search.cluster.work import Made, Work
from klsa_search.expansion.cut import CutExpansion, cut_arrays, packed_terms
from klsa_search.expansion.latent import (
    LatentSpace,
    added,
    places_of_documents,
    places_of_terms,
    scaled_sums,
)
from klsa_search.spectrum.products import to_features
from klsa_search.store.arrays import ArrayWriter, write_arrays


def packed(
    work: Work,
    parts: Sequence[Part],
    whole: Made,
    *,
    vectors: Sequence[Made],
    values: Eigenvalues,
    strongest: Sequence[Made],
    entries: int,
    term_weights: npt.NDArray[np.float64],
    edges: Sequence[int],
) -> tuple[list[Made], list[Made]]:
    """Pack the rows of each shard, and the terms of each range of features.

    vectors  (N, k) in pieces, `values` (m,) of the first of them: those of the latent space
    """
    m = len(values)
    calls = [
        {"part": part, "vectors": some, "dimensions": m}
        for part, some in zip(parts, vectors, strict=True)
    ]
    sums = work.make(_scaled, *calls)
    scaled = added((row for each in sums for row in mapped(each, "sums")), m)
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
        _rows,
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


def _scaled(out: Path, *, part: Part, vectors: Made, dimensions: int) -> None:
    sums = scaled_sums(mapped(part["kernel"], "scales"), _first(vectors, dimensions))
    save(out, sums=np.array(sums).reshape(len(sums), dimensions))


def _first(vectors: Made, dimensions: int) -> npt.NDArray[Any]:
    return np.ascontiguousarray(mapped(vectors, "vectors")[:, :dimensions])


def _terms(
    out: Path, *, parts: Sequence[Part], vectors: Sequence[Made], whole: Made, number: int,
    first: int, size: int, scaled: npt.NDArray[np.float64], values: Eigenvalues,
    term_weights: npt.NDArray[np.float64],
) -> None:  # fmt: skip
    """Where the terms of a range of features lie; pairs, which come last, lie nowhere."""
    precision = mapped(vectors[0], "vectors").dtype
    T = np.zeros((size, len(values)), precision)
    for part, some in zip(parts, vectors, strict=True):
        starts, columns, weights = range_of(part, number)
        U = _first(some, len(values))
        to_features(columns, weights, starts[:-1], starts[1:], U, T)
    terms = len(term_weights)
    mean = mapped(whole, "mean")[first : first + terms]
    places = places_of_terms(T[:terms], mean, scaled, values, term_weights)
    save(out, terms=packed_terms(places))


def _rows(
    out: Path, *, part: Part, whole: Made, vectors: Made, values: Eigenvalues,
    strongest: Made, entries: int,
) -> None:  # fmt: skip
    kernel = kernel_of(part, whole)
    places = places_of_documents(_first(vectors, len(values)), values)
    starts, columns, found = (mapped(strongest, name) for name in ("starts", "columns", "values"))
    N = max(part["first"] + part["documents"], columns.max(initial=-1) + 1)
    cut = CutExpansion.of(
        kernel,
        sparse.csr_array((found, columns, starts), shape=(part["documents"], N)),
        LatentSpace(places, np.zeros((0, len(values)), np.float32)),
        entries,
        first=part["first"],
        ranks=mapped(whole, "ranks"),
    )
    arrays = cut_arrays(cut)
    del arrays["cut_terms"]
    save(out, **arrays)


def joined(
    out: Path, *, rows: Sequence[Made], terms: Sequence[Made], eigenvalues: Eigenvalues,
    vectors: Sequence[Made] | None,
) -> None:  # fmt: skip
    """Write the files of a generation, one piece of one array in memory at a time.

    vectors  pieces of the eigenvectors, where they are kept: of few documents
    """
    for name in ("cut_rows", "cut_scales", "cut_cards", "cut_features"):
        _join(out, name, (mapped(some, name) for some in rows))
    _join(out, "cut_starts", _moved(rows))
    _join(out, "cut_terms", (mapped(some, "terms") for some in terms))
    write_arrays(out, {"cut_mean": mapped(rows[0], "cut_mean"), "eigenvalues": eigenvalues})
    if vectors is not None:
        U = np.concatenate([mapped(some, "vectors") for some in vectors])
        write_arrays(out, {"eigenvectors": U.astype(np.float32)})


def _join(out: Path, name: str, pieces: Iterator[npt.NDArray[Any]]) -> None:
    first = next(pieces)
    columns = first.shape[1] if first.ndim == 2 else None
    with ArrayWriter(out, name, first.dtype, columns) as writer:
        for piece in chain([first], pieces):
            if len(piece):
                writer.append(piece)


def _moved(rows: Sequence[Made]) -> Iterator[npt.NDArray[np.int64]]:
    """Where the features of each document begin: each piece goes on where the one before ends."""
    end = 0
    yield np.zeros(1, np.int64)
    for some in rows:
        starts = mapped(some, "cut_starts") + end
        end = starts[-1]
        yield starts[1:]
