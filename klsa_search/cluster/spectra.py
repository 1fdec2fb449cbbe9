"""The spectrum of the kernel in parts: pieces of the eigenvectors, one a shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Eigenvalues
from klsa_search.cluster.blocks import StoredProducts
from klsa_search.cluster.files import mapped, note, noted, save
from klsa_search.cluster.kernels import Part, rows_of
from klsa_search.cluster.slicing import PIECE
from klsa_search.cluster.work import Made, Work
from klsa_search.kernel.document import DocumentKernel, precision_of
from klsa_search.progress import Progress
from klsa_search.spectrum import krylov
from klsa_search.spectrum.solving import by_blocks, decompose, extremes, full_rank, gap_of


@dataclass(frozen=True)
class Solved:
    """What `Spectrum` has, with the eigenvectors in files: `vectors` in a folder a shard."""

    pieces: Sequence[Made]
    eigenvalues: Eigenvalues
    residual: float
    gap: float
    trace: float


def solved(
    work: Work,
    parts: Sequence[Part],
    whole: Made,
    *,
    features: int,
    edges: Sequence[int],
    dimensions: int,
    seed: int,
    progress: Progress,
) -> Solved:
    """Decompose the kernel, with the bits that `spectrum.decompose` has.

    Where that goes by single vectors, one step does it: the collection is small then.
    """
    N = sum(part["documents"] for part in parts)
    trace = noted(work.one(_trace, parts=parts))["trace"]
    wanted = max(1, min(dimensions, N - 1))
    if trace > 0 and by_blocks((N, features), wanted + 1, precision_of(N)):
        products = StoredProducts(work, parts, edges, seed)
        with threadpool_limits(limits=1, user_api="blas"):
            values, blocks, residual = krylov.strongest(products, wanted + 1, progress=progress)
        values = values[: full_rank(values, krylov.RANK_TOLERANCE)]
        of_shard = products.close(blocks)
        found = min(wanted, len(values))
        ends = work.make(_extremes, *({"pieces": some, "columns": found} for some in of_shard))
        largest = extremes(np.array([noted(end)["extremes"] for end in ends], np.float32))
        pieces = work.make(
            _turned, *({"pieces": some, "signs": np.sign(largest)} for some in of_shard)
        )
        work.empty(*(piece for some in of_shard for piece in some))
        return Solved(pieces, values[:wanted], residual, gap_of(values, wanted), trace)
    made = work.one(_decomposed, parts=parts, whole=whole, dimensions=dimensions, seed=seed)
    facts = noted(made)
    pieces = work.make(
        _cut_out,
        *(
            {"vectors": made, "first": part["first"], "documents": part["documents"]}
            for part in parts
        ),
    )
    values = np.array(facts["eigenvalues"], np.float64)
    work.empty(made)
    return Solved(pieces, values, facts["residual"], facts["gap"], trace)


def _trace(out: Path, *, parts: Sequence[Part]) -> None:
    """The sum as NumPy takes it, which is by halves of the whole: eight bytes a document."""
    diagonal = np.concatenate([mapped(part["kernel"], "diagonal") for part in parts])
    note(out, trace=float(diagonal.sum()))


def _extremes(out: Path, *, pieces: Sequence[Made], columns: int) -> None:
    U = np.hstack([mapped(piece, PIECE) for piece in pieces])[:, :columns]
    note(out, extremes=extremes(U).tolist())


def _turned(out: Path, *, pieces: Sequence[Made], signs: np.ndarray[Any, Any]) -> None:
    """The eigenvectors with their signs fixed."""
    U = np.hstack([mapped(piece, PIECE) for piece in pieces])
    save(out, vectors=U[:, : len(signs)] * signs)


def _decomposed(
    out: Path, *, parts: Sequence[Part], whole: Made, dimensions: int, seed: int
) -> None:
    mean = mapped(whole, "mean")
    kernel = DocumentKernel(
        sparse.vstack([rows_of(part, len(mean)) for part in parts], format="csr"),
        np.concatenate([mapped(part["kernel"], "scales") for part in parts]),
        mean,
    )
    found = decompose(kernel, dimensions, seed=seed, threads=1)
    save(out, vectors=found.eigenvectors)
    note(out, eigenvalues=found.eigenvalues.tolist(), residual=found.residual, gap=found.gap)


def _cut_out(out: Path, *, vectors: Made, first: int, documents: int) -> None:
    save(out, vectors=mapped(vectors, "vectors")[first : first + documents])
