"""Looking for the strongest entries of some rows of K among documents in parts, one after another.

First the heaviest features of each row's document are chosen, then each part adds its postings to
the pool, then each computes K for what of the pool is its own. What comes out does not depend on
how the documents are divided among parts; at a time only one part is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled
from klsa_search.kernel.entries import FILTER, entries_of_row, keep_largest
from klsa_search.kernel.pool import CutPostings, find_pool, heaviest
from klsa_search.selection import LOW

if TYPE_CHECKING:
    from klsa_search.arrays import Positions
    from klsa_search.kernel.document import DocumentKernel

Kept = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]
"""Columns and values of rows, and how many there are in each."""


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    cut       documents kept of a feature, its strongest
    features  of a document that are asked, its heaviest
    postings  that are added for a document
    pool      documents whose K is computed
    """

    cut: int = 2000
    features: int = 80
    postings: int = 80_000
    pool: int = 200


class Rows(NamedTuple):
    """The features of documents, numbered from `first` on, in float32.

    features  where each document begins, columns, weights
    centring  S, SΦμ, ‖μ‖²
    """

    first: int
    features: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float32]]
    centring: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], np.float32]

    @classmethod
    def of(cls, kernel: DocumentKernel, first: int = 0) -> Rows:
        """Of a kernel of the documents from `first` on."""
        return cls(
            first,
            (
                kernel.features.indptr,
                kernel.features.indices,
                kernel.features.data.astype(np.float32, copy=False),
            ),
            (
                kernel.scales.astype(np.float32),
                kernel.towards_mean.astype(np.float32),
                np.float32(kernel.mean_square),
            ),
        )

    @property
    def longest(self) -> int:
        """Most features of a document."""
        return int(np.diff(self.features[0]).max(initial=0))


class Looking:
    """Looks for a chunk of rows at a time.

    rows       of a chunk, at most
    documents  of a part, at most
    longest    most features of a document that is asked for
    Memory: 4 (documents + F), and for each row 16 bytes for each document of the pool and 8 for
    each feature that is asked.
    """

    def __init__(self, effort: Effort, rows: int, documents: int, F: int, longest: int) -> None:
        width = min(effort.features, longest)
        self._limits = (effort.features, effort.postings)
        self._pool = effort.pool
        self._order = np.zeros(longest, np.int64)
        self._asked = np.zeros((rows, width), np.int32)
        self._asked_weights = np.zeros((rows, width), np.float32)
        self._used = np.zeros(rows, np.int64)
        self._keys = np.zeros((rows, effort.pool + 1), np.int64)
        self._held = np.zeros(rows, np.int64)
        self._found = np.zeros((rows, effort.pool + 1), np.int64)
        self._sizes = np.zeros(rows, np.int64)
        sums = np.zeros(documents, np.float32)
        touched = np.zeros(max(effort.postings, effort.cut) + 1, np.int32)
        self._adding = (sums, sums.view(np.int32), touched, np.zeros(4 * effort.pool, np.int64))
        one = np.zeros(1, np.float32)
        self._one = (one, one.view(np.int32))
        others = np.zeros(effort.pool + 1, np.int64)
        self._comparing = (others, np.zeros(F, np.float32), np.zeros(FILTER, np.bool_), *self._one)

    def ask(self, documents: Positions, own: Rows, starts: npt.NDArray[np.integer[Any]]) -> None:
        """Begin with these documents, which are among `own`.

        starts  (F + 1,) where the postings of all parts begin, for each feature
        """
        self._documents, self._own, self._compared = documents, own, False
        self._held[:] = 0
        self._sizes[:] = 0
        _ask(
            documents - own.first, own.features, starts, self._limits, self._order,
            self._asked, self._asked_weights, self._used,
        )  # fmt: skip

    def add(self, first: int, postings: CutPostings) -> None:
        """Add the postings of a part, whose documents are numbered from `first` on."""
        _add(
            self._documents, self._asked, self._asked_weights, self._used, postings, first,
            self._pool, self._adding, self._keys, self._held,
        )  # fmt: skip

    def compare(self, part: Rows) -> None:
        """Compute K for what of the pool is in this part; all postings are added by now."""
        if not self._compared:  # the document itself
            count = len(self._documents)
            self._keys[np.arange(count), self._held[:count]] = LOW - self._documents
            self._held[:count] += 1
            self._compared = True
        _compare(
            self._documents - self._own.first, self._own.features, self._own.centring,
            part.first, part.features, part.centring,
            self._keys, self._held, self._found, self._sizes, self._comparing,
        )  # fmt: skip

    def keep(self, rows: Kept, at: int) -> None:
        """Write the strongest entries to the rows from `at` on."""
        _keep(len(self._documents), self._found, self._sizes, at, rows, *self._one)


@compiled
def _ask(
    rows: Any, features: Any, of_feature: Any, limits: Any, order: Any, asked: Any,
    asked_weights: Any, used: Any,
) -> None:  # fmt: skip
    starts, columns, weights = features
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        used[i] = heaviest(
            columns[begin:end], weights[begin:end], of_feature, limits, order, asked[i],
            asked_weights[i],
        )  # fmt: skip


@compiled
def _add(
    documents: Any, asked: Any, asked_weights: Any, used: Any, postings: Any, first: int,
    pool: int, scratch: Any, keys: Any, held: Any,
) -> None:  # fmt: skip
    sums, sums_bits, touched, merged = scratch
    for i in range(len(documents)):
        size = held[i]
        for j in range(size):
            merged[j] = keys[i, j]
        size = find_pool(
            documents[i], asked[i], asked_weights[i], used[i], postings, first, pool,
            sums, sums_bits, touched, merged, size,
        )  # fmt: skip
        for j in range(size):
            keys[i, j] = merged[j]
        held[i] = size


@compiled
def _compare(
    rows: Any, own: Any, own_centring: Any, first: int, features: Any, centring: Any,
    keys: Any, held: Any, found: Any, sizes: Any, scratch: Any,
) -> None:  # fmt: skip
    starts, columns, weights = own
    scales, towards_mean, _ = own_centring
    others, wide, asked, one, bits = scratch
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        row = (columns[begin:end], weights[begin:end], scales[rows[i]], towards_mean[rows[i]])
        sizes[i] = entries_of_row(
            row, first, features, centring, keys[i], held[i], found[i], sizes[i],
            others, wide, asked, one, bits,
        )  # fmt: skip


@compiled
def _keep(count: int, found: Any, sizes: Any, at: int, rows: Any, one: Any, bits: Any) -> None:
    for i in range(count):
        keep_largest(found[i], sizes[i], at + i, rows, one, bits)
