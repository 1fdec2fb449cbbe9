"""Bounds of impacts: what lets a search pass over postings and lose nothing.

Documents are cut into blocks of 2^b positions. Of every term the strongest impact is known, and of
those with many postings that of every block, with where the block's postings begin: upper bounds,
as in MaxScore [Turtle, Flood 1995] and block-max WAND [Ding, Suel 2011], with the blocks cut by
document as in [Dimopoulos, Nepomnyashchiy, Suel 2013]. The k-th best impact of a term is a lower
bound of the k-th best score, since each of those k documents scores at least that much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.kernel.postings import Postings

DEPTHS: Final = (10, 100, 1000)
"""The k of the k-th best impacts that are kept; a search uses the next one above its own."""

SMALL: Final = 2**16
"""Documents up to which there is one block: there is nothing to pass over."""

BLOCK_BITS: Final = 13
"""Blocks of 8,192: an accumulator of 32 KiB, which stays in the first cache of a processor."""

SMALLEST_BITS: Final = 6
"""Blocks are of 64 at least, which is what one comparison looks at."""

_KEPT: Final = ("step", "maxima", "kth_best", "rows", "block_starts", "block_maxima")

_FREQUENT: Final = 64
"""Postings from which a term is worth a row of block bounds (and one a block on average)."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the impacts of some postings, in whole steps of their grid.

    step          one step, a power of 2
    maxima        (V,) int32, the strongest impact of each term, 0 without any
    kth_best      (V, 3) int32, its 10th, 100th and 1000th best, 0 where it has fewer
    rows          (V,) int32, its row in the block arrays, -1 for none
    block_starts  (F, blocks + 1) int32, where each block begins among its postings
    block_maxima  (F, blocks) int32, its strongest impact in each block, 0 without any
    size          N, the number of documents
    """

    step: float
    maxima: npt.NDArray[np.int32]
    kth_best: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    block_starts: npt.NDArray[np.int32]
    block_maxima: npt.NDArray[np.int32]
    size: int

    @property
    def blocks(self) -> int:
        """How many blocks the documents are cut into."""
        return int(self.block_maxima.shape[1])

    @property
    def block_bits(self) -> int:
        """b: the smallest that gives this number of blocks, and the only one if it is above 1."""
        bits = SMALLEST_BITS
        while -(-self.size >> bits) > self.blocks:
            bits += 1
        return bits

    @classmethod
    def of(cls, postings: Postings, step: float, *, block_bits: int | None = None) -> Bounds:
        """Bounds of postings whose weights are whole numbers of steps.

        block_bits  at least 6; by default one block for up to 65,536 documents, else 13
        Cost O(nnz), and a call of NumPy for each term of 10 postings or more.
        """
        size, terms = postings.size, len(postings.starts) - 1
        if block_bits is None:
            block_bits = BLOCK_BITS if size > SMALL else SMALL.bit_length() - 1
        blocks = max(1, -(-size >> block_bits))
        lengths = np.diff(postings.starts)
        frequent = np.flatnonzero(lengths >= max(_FREQUENT, blocks)) if blocks > 1 else np.arange(0)
        rows = np.full(terms, -1, np.int32)
        rows[frequent] = np.arange(len(frequent))
        block_starts = np.zeros((len(frequent), blocks + 1), np.int32)
        block_maxima = np.zeros((len(frequent), blocks), np.int32)
        edges = np.arange(blocks + 1) << block_bits
        for row, term in enumerate(frequent.tolist()):
            documents, weights = postings.of_term(term)
            starts = np.searchsorted(documents, edges)
            held = np.flatnonzero(np.diff(starts))
            block_starts[row] = starts
            block_maxima[row, held] = _steps(np.maximum.reduceat(weights, starts[held]), step)
        maxima = np.zeros(terms, np.int32)
        held = np.flatnonzero(lengths)
        if len(held):
            strongest = np.maximum.reduceat(postings.weights, postings.starts[held])
            maxima[held] = _steps(strongest, step)
        return cls(
            step=step,
            maxima=maxima,
            kth_best=_kth_best(postings, lengths, step),
            rows=rows,
            block_starts=block_starts,
            block_maxima=block_maxima,
            size=size,
        )


def bounds_arrays(bounds: Bounds) -> dict[str, npt.NDArray[Any]]:
    """Take bounds apart into the arrays they are kept as: `bounds_<name>`; N is kept elsewhere."""
    return {f"bounds_{name}": np.atleast_1d(getattr(bounds, name)) for name in _KEPT}


def bounds_of_arrays(array: Callable[[str], npt.NDArray[Any]], size: int) -> Bounds:
    """Put them together again; `array` gives the array of a name."""
    kept = {name: array(f"bounds_{name}") for name in _KEPT}
    return Bounds(**{**kept, "step": kept["step"].item()}, size=size)


def _kth_best(
    postings: Postings, lengths: npt.NDArray[np.int64], step: float
) -> npt.NDArray[np.int32]:
    kth_best = np.zeros((len(lengths), len(DEPTHS)), np.int32)
    for term in np.flatnonzero(lengths >= DEPTHS[0]).tolist():
        _, weights = postings.of_term(term)
        places = [len(weights) - depth for depth in DEPTHS if depth <= len(weights)]
        kth_best[term, : len(places)] = _steps(np.partition(weights, places)[places], step)
    return kth_best


def _steps(weights: npt.NDArray[np.float32], step: float) -> npt.NDArray[np.int32]:
    return (weights / np.float32(step)).astype(np.int32)
