"""The spectrum of the kernel, computed by shards.

What is done to a block waits until its content is needed: then one step a shard reads it, does it,
writes the piece and sums it with others, so that work goes over the files as seldom as it can. The
sums of each slice come to who leads, who adds them in document order: no bit depends on the shards.
What the solver does not need any more is emptied of its arrays; that it was made, and the sums,
stay, so that a solver that starts again reaches its state without a product.

Each makes a piece, slice by slice, and where that is asked for sums it with others, by slices, in
the same step. A piece is in `piece`, or `T` where it is of a range of features.
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
from klsa_search.cluster.work import Step, StepResult, Work, mapped, note, noted, save
from klsa_search.core.array_types import Eigenvalues, Matrix, Positions
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
    """A block of columns: the step that makes its pieces, and the pieces once they are made.

    calls    of the step, one a shard
    sources  blocks that nothing else reads once this is made
    others   what else nothing reads then
    """

    step: Step
    calls: Sequence[Mapping[str, Any]]
    sources: Sequence[StoredBlock] = ()
    others: Sequence[StepResult] = ()
    pieces: list[StepResult] = field(default_factory=list)


class StoredProducts:
    """The products of the solver, by steps of `work`."""

    def __init__(self, work: Work, parts: Sequence[Part], edges: Sequence[int], seed: int) -> None:
        self._work, self._parts, self._edges, self._seed = work, parts, edges, seed
        self._draws = 0
        self._made: list[StepResult] = []
        self._mean_square = noted(parts[0]["kernel"])["mean_square"]

    def random(self) -> StoredBlock:
        """Draw a block of WIDTH columns."""
        return StoredBlock(draw, [{**call, "columns": WIDTH} for call in self._drawing()])

    def renew(self, W: StoredBlock, columns: Positions) -> StoredBlock:
        """Replace columns of a block by random ones of about length 1."""
        scale = math.sqrt(sum(part["documents"] for part in self._parts))
        calls = [
            {**call, "piece": piece, "columns": columns.tolist(), "length": scale}
            for call, piece in zip(self._drawing(), self._pieces(W), strict=True)
        ]
        return StoredBlock(renew, calls, [W])

    def apply(self, X: StoredBlock) -> StoredBlock:
        """K X: to ranges of features, and back to the documents of each part."""
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
        """Xᵀ Y."""
        return self._sums(Y, [(X, [] if X is Y else self._pieces(X), PIECE) for X in blocks])

    def subtract(self, X: Sequence[StoredBlock], C: Matrix, Y: StoredBlock) -> StoredBlock:
        """Y - X C."""
        of_part = zip(*map(self._pieces, X), strict=True)
        calls = [
            {"piece": piece, "others": list(others), "coefficients": C.astype(np.float32)}
            for piece, others in zip(self._pieces(Y), of_part, strict=True)
        ]
        return StoredBlock(subtract, calls, [Y])

    def combine(self, X: Sequence[StoredBlock], C: Matrix) -> list[StoredBlock]:
        """X C; of more blocks than one at once, as all of X is gone then."""
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
        """Let go of all blocks but some, and give the pieces of those, shard by shard."""
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
        """Sum a block with others; where it is not made yet, in the same step."""
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
"""The sums of each slice, (slices, a, b); no array file, as it stays when the piece goes."""

PIECE, ITSELF = "piece", "itself"

Against = Sequence[Any] | None
"""What a piece is summed with: pairs of a folder and an array, or itself."""


def draw(
    out: Path, *, seed: int, draw: int, number: int, documents: int, columns: int, against: Against
) -> None:
    """Random numbers; `number` is that of the first slice of the documents."""
    _finish(out, _drawn(seed, draw, number, documents, columns), against)


def renew(
    out: Path, *, piece: StepResult, columns: list[int], length: float, seed: int, draw: int,
    number: int, documents: int, against: Against,
) -> None:  # fmt: skip
    """Replace columns by random ones, over a length."""
    W = np.array(mapped(piece, PIECE))
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
    """The product of a range of features with all documents, in document order."""
    T: Block | None = None
    for part, piece in zip(parts, pieces, strict=True):
        X = mapped(piece, PIECE)
        if T is None:
            T = np.zeros((size, X.shape[1]), np.float32)
        starts, columns, weights = range_of(part, number)
        to_features(columns, weights, starts[:-1], starts[1:], X, T)
    assert T is not None
    save(out, T=T)


def to_part(
    out: Path, *, part: Part, features: Sequence[StepResult], shift: Block, against: Against
) -> None:
    """From the features back to the documents of a part, range by range."""
    Y = np.empty((part["documents"], shift.shape[1]), np.float32)
    from_mean(mapped(part["kernel"], "centring"), shift, Y)
    for number, of_range in enumerate(features):
        starts, columns, weights = range_of(part, number)
        to_documents(columns, weights, starts[:-1], starts[1:], mapped(of_range, "T"), Y)
    _finish(out, Y, against)


def subtract(
    out: Path,
    *,
    piece: StepResult,
    others: Sequence[StepResult],
    coefficients: Block,
    against: Against,
) -> None:
    """Y - X C, `others` being the pieces of X."""
    Y = np.array(mapped(piece, PIECE))
    X = [mapped(other, PIECE) for other in others]
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(Y)):
            subtract_of(X, coefficients, Y, rows)
    _finish(out, Y, against)


def combine(
    out: Path, *, pieces: Sequence[StepResult], coefficients: Block, against: Against
) -> None:
    """X C, `pieces` being those of X."""
    X = [mapped(piece, PIECE) for piece in pieces]
    W = np.empty((len(X[0]), coefficients.shape[1]), np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(W)):
            W[rows] = combined_of(X, coefficients, rows)
    _finish(out, W, against)


def sum_up(out: Path, *, piece: StepResult, against: Against) -> None:
    """Sum a piece that was made before."""
    _sum(out, mapped(piece, PIECE), against)


def _finish(out: Path, W: Block, against: Against) -> None:
    save(out, **{PIECE: W})
    _sum(out, W, against)


def _sum(out: Path, W: Block, against: Against) -> None:
    """Sum each slice: (slices, a, b)."""
    if against is None:
        return
    X = [W if each == ITSELF else mapped(*each) for each in against]
    with threadpool_limits(limits=1, user_api="blas"):
        sums = [inner_of(X, W, rows) for rows in slices(len(W))]
    shape = (0, sum(block.shape[1] for block in X), W.shape[1])
    with (out / SUMS).open("wb") as stream:
        np.save(stream, np.stack(sums) if sums else np.empty(shape, np.float32))


@dataclass(frozen=True)
class Solved:
    """What `Spectrum` has, with the eigenvectors in files: `vectors` in a folder a shard."""

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
    """Decompose the kernel, with the bits that `spectrum.decompose` has.

    Where that goes by single vectors, one step does it: the collection is small then.
    """
    N = sum(part["documents"] for part in parts)
    trace = noted(work.one(_trace, parts=parts))["trace"]
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


def _extremes(out: Path, *, pieces: Sequence[StepResult], columns: int) -> None:
    U = np.hstack([mapped(piece, PIECE) for piece in pieces])[:, :columns]
    note(out, extremes=extremes(U).tolist())


def _turned(out: Path, *, pieces: Sequence[StepResult], signs: np.ndarray[Any, Any]) -> None:
    """The eigenvectors with their signs fixed."""
    U = np.hstack([mapped(piece, PIECE) for piece in pieces])
    save(out, vectors=U[:, : len(signs)] * signs)


def _decomposed(
    out: Path, *, parts: Sequence[Part], whole: StepResult, dimensions: int, seed: int
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


def _cut_out(out: Path, *, vectors: StepResult, first: int, documents: int) -> None:
    save(out, vectors=mapped(vectors, "vectors")[first : first + documents])
