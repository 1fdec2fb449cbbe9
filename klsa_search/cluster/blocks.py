"""Blocks of columns in files, a piece a shard, and the products of the block solver with them.

What is done to a block waits until its content is needed: then one step a shard reads it, does it,
writes the piece and sums it with others, so that work goes over the files as seldom as it can. The
sums of each slice come to who leads, who adds them in document order: no bit depends on the shards.
What the solver does not need any more is emptied of its arrays; that it was made, and the sums,
stay, so that a solver that starts again reaches its state without a product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from klsa_search.arrays import Matrix, Positions
from klsa_search.cluster import slicing
from klsa_search.cluster.files import noted
from klsa_search.cluster.kernels import Part
from klsa_search.cluster.slicing import ITSELF, PIECE, SUMS
from klsa_search.cluster.work import Made, Step, Work
from klsa_search.spectrum.products import columns_of, shift_of
from klsa_search.spectrum.slices import WIDTH, number_of


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
    others: Sequence[Made] = ()
    pieces: list[Made] = field(default_factory=list)


class StoredProducts:
    """The products of the solver, by steps of `work`."""

    def __init__(self, work: Work, parts: Sequence[Part], edges: Sequence[int], seed: int) -> None:
        self._work, self._parts, self._edges, self._seed = work, parts, edges, seed
        self._draws = 0
        self._made: list[Made] = []
        self._mean_square = noted(parts[0]["kernel"])["mean_square"]

    def random(self) -> StoredBlock:
        """Draw a block of WIDTH columns."""
        return StoredBlock(slicing.draw, [{**call, "columns": WIDTH} for call in self._drawing()])

    def renew(self, W: StoredBlock, columns: Positions) -> StoredBlock:
        """Replace columns of a block by random ones of about length 1."""
        scale = math.sqrt(sum(part["documents"] for part in self._parts))
        calls = [
            {**call, "piece": piece, "columns": columns.tolist(), "length": scale}
            for call, piece in zip(self._drawing(), self._pieces(W), strict=True)
        ]
        return StoredBlock(slicing.renew, calls, [W])

    def apply(self, X: StoredBlock) -> StoredBlock:
        """K X: to ranges of features, and back to the documents of each part."""
        kernels: list[Made] = [part["kernel"] for part in self._parts]
        shift = shift_of(self._sums(X, [(None, kernels, "centring")]), self._mean_square)
        pieces = self._pieces(X)
        features = self._work.make(
            slicing.to_range,
            *(
                {"parts": self._parts, "pieces": pieces, "number": number, "size": last - first}
                for number, (first, last) in enumerate(pairwise(self._edges))
            ),
        )
        calls = [{"part": part, "features": features, "shift": shift} for part in self._parts]
        return StoredBlock(slicing.to_part, calls, others=features)

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
        return StoredBlock(slicing.subtract, calls, [Y])

    def combine(self, X: Sequence[StoredBlock], C: Matrix) -> list[StoredBlock]:
        """X C; of more blocks than one at once, as all of X is gone then."""
        of_part = [list(pieces) for pieces in zip(*map(self._pieces, X), strict=True)]
        blocks = []
        for own in columns_of(C):
            calls = [{"pieces": some, "coefficients": own} for some in of_part]
            blocks.append(StoredBlock(slicing.combine, calls))
        if len(X) == 1:
            blocks[0].sources = X
        else:
            for block in blocks:
                self._pieces(block)
            self._gone(X)
        return blocks

    def close(self, kept: Sequence[StoredBlock]) -> list[list[Made]]:
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
                "number": number_of(part["first"]),
                "documents": part["documents"],
            }
            for part in self._parts
        ]

    def _pieces(self, block: StoredBlock) -> list[Made]:
        if not block.pieces:
            self._make(block, None)
        return block.pieces

    def _sums(
        self, Y: StoredBlock, against: Sequence[tuple[StoredBlock | None, list[Made], str]]
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
            made = self._work.make(slicing.sum_up, *calls)
        else:
            made = self._make(Y, of_part)
        parts = [part for each in made for part in np.load(each.path / SUMS)]
        total = np.zeros(parts[0].shape)
        for part in parts:
            total += part
        return total

    def _make(self, block: StoredBlock, against: Sequence[list[Any]] | None) -> list[Made]:
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
