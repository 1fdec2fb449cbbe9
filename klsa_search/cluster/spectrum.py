"""The spectrum of the kernel, computed by shards.

Operations on a block are lazy: when its content is needed, one step for each shard reads the
inputs, writes the piece, and computes its inner products with other blocks, so files are read as
rarely as possible. Inner products are computed by slices and summed here in document order, so the
result does not depend on the shards. Arrays that the solver no longer needs are removed; folders
and sums stay, so that a resumed solver repeats no product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from klsa_search.cluster.document_kernel import Part, range_of, rows_of
from klsa_search.cluster.work import (
    Step,
    StepResult,
    Work,
    map_array,
    read_facts,
    save,
    write_facts,
)
from klsa_search.core.array_types import Eigenvalues, Integers, Matrix
from klsa_search.core.progress import Progress
from klsa_search.kernels.document_kernel import DocumentKernel, precision_of
from klsa_search.lowrank import block_lanczos
from klsa_search.lowrank.eigensolver import by_blocks, decompose, extremes, full_rank, gap_of
from klsa_search.lowrank.products import (
    WIDTH,
    Block,
    columns_of,
    combined_of,
    from_mean,
    inner_of,
    random_of,
    shift_of,
    slice_number,
    slices,
    subtract_of,
    to_documents,
    to_features,
)


@dataclass(eq=False)
class StoredBlock:
    """A lazy block of columns.

    step     step that computes its pieces
    calls    arguments of the step for each shard
    sources  blocks that can be removed once the pieces exist
    others   results that can be removed then
    pieces   pieces by shard, once computed
    """

    step: Step
    calls: Sequence[Mapping[str, Any]]
    sources: Sequence[StoredBlock] = ()
    others: Sequence[StepResult] = ()
    pieces: list[StepResult] = field(default_factory=list)


class StoredProducts:
    """Block operations of the solver, as steps of `work`."""

    def __init__(self, work: Work, parts: Sequence[Part], edges: Sequence[int], seed: int) -> None:
        self._work, self._parts, self._edges, self._seed = work, parts, edges, seed
        self._draws = 0
        self._made: list[StepResult] = []
        self._mean_square = read_facts(parts[0]["kernel"])["mean_square"]

    def random(self) -> StoredBlock:
        """Return a random block of WIDTH columns."""
        return StoredBlock(draw, [{**call, "columns": WIDTH} for call in self._drawing()])

    def renew(self, W: StoredBlock, columns: Integers) -> StoredBlock:
        """Return a block with some columns replaced by random ones of about unit length."""
        scale = math.sqrt(sum(part["documents"] for part in self._parts))
        calls = [
            {**call, "piece": piece, "columns": columns.tolist(), "length": scale}
            for call, piece in zip(self._drawing(), self._pieces(W), strict=True)
        ]
        return StoredBlock(renew, calls, [W])

    def apply(self, X: StoredBlock) -> StoredBlock:
        """Return K X, computed by ranges of features, then by parts of the documents."""
        kernels: list[StepResult] = [part["kernel"] for part in self._parts]
        shift = shift_of(self._sums(X, [(None, kernels, "centring")]), self._mean_square)
        pieces = self._pieces(X)
        features = self._work.make(
            to_range,
            *(
                {"parts": self._parts, "pieces": pieces, "number": number, "size": last - first}
                for number, (first, last) in enumerate(pairwise(self._edges))
            ),
        )
        calls = [{"part": part, "features": features, "shift": shift} for part in self._parts]
        return StoredBlock(to_part, calls, others=features)

    def inner(self, blocks: Sequence[StoredBlock], Y: StoredBlock) -> Matrix:
        """Return Xᵀ Y."""
        return self._sums(Y, [(X, [] if X is Y else self._pieces(X), PIECE) for X in blocks])

    def subtract(self, X: Sequence[StoredBlock], C: Matrix, Y: StoredBlock) -> StoredBlock:
        """Return Y - X C."""
        of_part = zip(*map(self._pieces, X), strict=True)
        calls = [
            {"piece": piece, "others": list(others), "coefficients": C.astype(np.float32)}
            for piece, others in zip(self._pieces(Y), of_part, strict=True)
        ]
        return StoredBlock(subtract, calls, [Y])

    def combine(self, X: Sequence[StoredBlock], C: Matrix) -> list[StoredBlock]:
        """Return X C; X of several blocks is computed now, as X is removed afterwards."""
        of_part = [list(pieces) for pieces in zip(*map(self._pieces, X), strict=True)]
        blocks = []
        for own in columns_of(C):
            calls = [{"pieces": some, "coefficients": own} for some in of_part]
            blocks.append(StoredBlock(combine, calls))
        if len(X) == 1:
            blocks[0].sources = X
        else:
            for block in blocks:
                self._pieces(block)
            self._gone(X)
        return blocks

    def close(self, kept: Sequence[StoredBlock]) -> list[list[StepResult]]:
        """Remove all blocks except `kept`, and return the pieces of these by shard."""
        pieces = [self._pieces(block) for block in kept]
        names = {piece.name for each in pieces for piece in each}
        self._work.empty(*(made for made in self._made if made.name not in names))
        return [list(some) for some in zip(*pieces, strict=True)]

    def _drawing(self) -> list[dict[str, Any]]:
        draw, self._draws = self._draws, self._draws + 1
        return [
            {
                "seed": self._seed,
                "draw": draw,
                "number": slice_number(part["first"]),
                "documents": part["documents"],
            }
            for part in self._parts
        ]

    def _pieces(self, block: StoredBlock) -> list[StepResult]:
        if not block.pieces:
            self._make(block, None)
        return block.pieces

    def _sums(
        self, Y: StoredBlock, against: Sequence[tuple[StoredBlock | None, list[StepResult], str]]
    ) -> Matrix:
        """Return the inner products of a block with others, in the step that computes it if new."""
        of_part = [
            [ITSELF if each is Y else [pieces[i], name] for each, pieces, name in against]
            for i in range(len(self._parts))
        ]
        if Y.pieces:
            calls = [
                {"piece": piece, "against": each}
                for piece, each in zip(Y.pieces, of_part, strict=True)
            ]
            made = self._work.make(sum_up, *calls)
        else:
            made = self._make(Y, of_part)
        parts = [part for each in made for part in np.load(each.path / SUMS)]
        total = np.zeros(parts[0].shape)
        for part in parts:
            total += part
        return total

    def _make(self, block: StoredBlock, against: Sequence[list[Any]] | None) -> list[StepResult]:
        calls = (
            {**call, "against": against[i] if against else None}
            for i, call in enumerate(block.calls)
        )
        block.pieces = self._work.make(block.step, *calls)
        self._made += block.pieces
        self._gone(block.sources)
        self._work.empty(*block.others)
        return block.pieces

    def _gone(self, blocks: Sequence[StoredBlock]) -> None:
        for block in blocks:
            self._work.empty(*block.pieces)


SUMS = "sums.f32"
"""File of the inner products of each slice, (slices, a, b); `Work.empty` keeps it."""

PIECE, ITSELF = "piece", "itself"

Against = Sequence[Any] | None
"""Factors of the inner products of a piece: pairs of folder and array, or `ITSELF`."""


def draw(
    out: Path, *, seed: int, draw: int, number: int, documents: int, columns: int, against: Against
) -> None:
    """Step: draw random numbers; `number` is that of the first slice of the documents."""
    _finish(out, _drawn(seed, draw, number, documents, columns), against)


def renew(
    out: Path, *, piece: StepResult, columns: list[int], length: float, seed: int, draw: int,
    number: int, documents: int, against: Against,
) -> None:  # fmt: skip
    """Step: replace columns by random ones, divided by `length`."""
    W = np.array(map_array(piece, PIECE))
    W[:, columns] = _drawn(seed, draw, number, documents, len(columns))
    W[:, columns] /= np.float32(length)
    _finish(out, W, against)


def _drawn(seed: int, draw: int, number: int, documents: int, columns: int) -> Block:
    W = np.empty((documents, columns), np.float32)
    for i, rows in enumerate(slices(documents)):
        W[rows] = random_of(seed, draw, number + i, (rows.stop - rows.start, columns))
    return W


def to_range(
    out: Path, *, parts: Sequence[Part], pieces: Sequence[StepResult], number: int, size: int
) -> None:
    """Step: multiply a range of features with the pieces of all documents, in document order."""
    T: Block | None = None
    for part, piece in zip(parts, pieces, strict=True):
        X = map_array(piece, PIECE)
        if T is None:
            T = np.zeros((size, X.shape[1]), np.float32)
        starts, columns, weights = range_of(part, number)
        to_features(columns, weights, starts[:-1], starts[1:], X, T)
    assert T is not None
    save(out, T=T)


def to_part(
    out: Path, *, part: Part, features: Sequence[StepResult], shift: Block, against: Against
) -> None:
    """Step: multiply the documents of a part with the results of all ranges of features."""
    Y = np.empty((part["documents"], shift.shape[1]), np.float32)
    from_mean(map_array(part["kernel"], "centring"), shift, Y)
    for number, of_range in enumerate(features):
        starts, columns, weights = range_of(part, number)
        to_documents(columns, weights, starts[:-1], starts[1:], map_array(of_range, "T"), Y)
    _finish(out, Y, against)


def subtract(
    out: Path,
    *,
    piece: StepResult,
    others: Sequence[StepResult],
    coefficients: Block,
    against: Against,
) -> None:
    """Step: Y - X C; `others` are the pieces of X."""
    Y = np.array(map_array(piece, PIECE))
    X = [map_array(other, PIECE) for other in others]
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(Y)):
            subtract_of(X, coefficients, Y, rows)
    _finish(out, Y, against)


def combine(
    out: Path, *, pieces: Sequence[StepResult], coefficients: Block, against: Against
) -> None:
    """Step: X C; `pieces` are those of X."""
    X = [map_array(piece, PIECE) for piece in pieces]
    W = np.empty((len(X[0]), coefficients.shape[1]), np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(W)):
            W[rows] = combined_of(X, coefficients, rows)
    _finish(out, W, against)


def sum_up(out: Path, *, piece: StepResult, against: Against) -> None:
    """Step: compute inner products of an existing piece."""
    _sum(out, map_array(piece, PIECE), against)


def _finish(out: Path, W: Block, against: Against) -> None:
    save(out, **{PIECE: W})
    _sum(out, W, against)


def _sum(out: Path, W: Block, against: Against) -> None:
    """Write the inner products of each slice: (slices, a, b)."""
    if against is None:
        return
    X = [W if each == ITSELF else map_array(*each) for each in against]
    with threadpool_limits(limits=1, user_api="blas"):
        sums = [inner_of(X, W, rows) for rows in slices(len(W))]
    shape = (0, sum(block.shape[1] for block in X), W.shape[1])
    with (out / SUMS).open("wb") as stream:
        np.save(stream, np.stack(sums) if sums else np.empty(shape, np.float32))


@dataclass(frozen=True)
class Solved:
    """A `Spectrum` whose eigenvectors are files: `vectors` in a folder for each shard."""

    pieces: Sequence[StepResult]
    eigenvalues: Eigenvalues
    residual: float
    gap: float
    trace: float


def solved(
    work: Work,
    parts: Sequence[Part],
    whole: StepResult,
    *,
    features: int,
    edges: Sequence[int],
    dimensions: int,
    seed: int,
    progress: Progress,
) -> Solved:
    """Decompose the kernel, bit for bit as `lowrank.eigensolver.decompose`.

    A small collection, which is not solved by blocks, is decomposed in one step.
    """
    N = sum(part["documents"] for part in parts)
    trace = read_facts(work.one(_trace, parts=parts))["trace"]
    wanted = max(1, min(dimensions, N - 1))
    if trace > 0 and by_blocks((N, features), wanted + 1, precision_of(N)):
        products = StoredProducts(work, parts, edges, seed)
        with threadpool_limits(limits=1, user_api="blas"):
            values, blocks, residual = block_lanczos.largest_eigenpairs(
                products, wanted + 1, progress=progress
            )
        values = values[: full_rank(values, block_lanczos.RANK_TOLERANCE)]
        of_shard = products.close(blocks)
        found = min(wanted, len(values))
        ends = work.make(_extremes, *({"pieces": some, "columns": found} for some in of_shard))
        largest = extremes(np.array([read_facts(end)["extremes"] for end in ends], np.float32))
        pieces = work.make(
            _turned, *({"pieces": some, "signs": np.sign(largest)} for some in of_shard)
        )
        work.empty(*(piece for some in of_shard for piece in some))
        return Solved(pieces, values[:wanted], residual, gap_of(values, wanted), trace)
    made = work.one(_decomposed, parts=parts, whole=whole, dimensions=dimensions, seed=seed)
    facts = read_facts(made)
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
    """Step: sum the diagonal in one array, as NumPy sums pairwise. Memory: 8 bytes a document."""
    diagonal = np.concatenate([map_array(part["kernel"], "diagonal") for part in parts])
    write_facts(out, trace=float(diagonal.sum()))


def _extremes(out: Path, *, pieces: Sequence[StepResult], columns: int) -> None:
    U = np.hstack([map_array(piece, PIECE) for piece in pieces])[:, :columns]
    write_facts(out, extremes=extremes(U).tolist())


def _turned(out: Path, *, pieces: Sequence[StepResult], signs: np.ndarray[Any, Any]) -> None:
    """Step: write the eigenvectors with fixed signs."""
    U = np.hstack([map_array(piece, PIECE) for piece in pieces])
    save(out, vectors=U[:, : len(signs)] * signs)


def _decomposed(
    out: Path, *, parts: Sequence[Part], whole: StepResult, dimensions: int, seed: int
) -> None:
    mean = map_array(whole, "mean")
    kernel = DocumentKernel(
        sparse.vstack([rows_of(part, len(mean)) for part in parts], format="csr"),
        np.concatenate([map_array(part["kernel"], "scales") for part in parts]),
        mean,
    )
    found = decompose(kernel, dimensions, seed=seed, threads=1)
    save(out, vectors=found.eigenvectors)
    write_facts(out, eigenvalues=found.eigenvalues.tolist(), residual=found.residual, gap=found.gap)


def _cut_out(out: Path, *, vectors: StepResult, first: int, documents: int) -> None:
    save(out, vectors=map_array(vectors, "vectors")[first : first + documents])
