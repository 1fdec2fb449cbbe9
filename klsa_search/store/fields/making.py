"""A column in the making: values of one type, batch by batch, in a spool all columns share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.config import FieldType
from klsa_search.features.spool import Spool
from klsa_search.store.fields.values import Code, Limits, Misfit, is_placeholder, taker

KEPT: Final[dict[FieldType, np.dtype[Any]]] = {
    "keyword": np.dtype(np.int32),
    "number": np.dtype(np.float64),
    "date": np.dtype(np.int64),
}
"""Type of the numbers that stand for values."""

MISSING: Final[dict[FieldType, Any]] = {
    "keyword": -1,
    "number": np.nan,
    "date": np.iinfo(np.int64).min,
}
"""What stands for a document without a value, where no document has several."""

_COUNTS: Final = np.dtype(np.int32)


class _Piece(NamedTuple):
    """Documents in order: how many they are, how many values they have, and where those are.

    counted  whether behind the values it says how many each document has; else all have one, or
             none
    """

    documents: int
    values: int
    begin: int
    counted: bool


class Making:
    """A column of one type that grows by batches of documents.

    kind     its type
    lists    whether some document has several values
    values   so far
    present  documents that have a value
    fitting  values that are of its type, those that a document repeats included
    others   values that are not, without those that conventionally stand for a missing one
    codes    of the others: texts of digits that are codes
    misfits  documents with a value that does not fit, which counts as missing
    reason   what the first of the others is
    texts    numbers of the different texts, in no order
    Memory: the texts, and 100 bytes a batch.
    """

    def __init__(
        self, kind: FieldType, limits: Limits, spool: Spool, *, declared: bool = False
    ) -> None:
        self.kind: FieldType = kind
        self.lists = False
        self.values = self.present = 0
        self.fitting = self.others = self.codes = self.misfits = 0
        self.reason: str | None = None
        self._take = taker(kind, limits, declared=declared)
        self.texts: dict[str, int] = {}
        self._limits, self._spool = limits, spool
        self._pieces: list[_Piece] = []

    def pass_over(self, documents: int) -> None:
        """Go on by documents without a value."""
        if self._pieces and not self._pieces[-1].values:
            documents += self._pieces.pop().documents
        if documents:
            self._pieces.append(_Piece(documents, 0, 0, False))

    def extend(self, flat: list[object], counts: list[int] | None) -> None:
        """Go on by the values of a batch, as `flattened` gives them.

        Of several values of a document each is kept once, in their order. Misfit where there are
        too many different texts: then nothing is kept.
        """
        try:
            values = list(map(self._take, flat))
        except Misfit:
            values = self._fit(flat, counts)
        self.fitting += len(values) - values.count(None)
        documents = len(flat) if counts is None else len(counts)
        if counts is not None or None in values:
            values, counts = in_order(values, counts)
        if not values:
            self.pass_over(documents)
            return
        begin = len(self._spool)
        self._append(np.array(self._coded(values), KEPT[self.kind]))
        if counts is None:
            self.present += documents
        else:
            self._append(np.array(counts, _COUNTS))
            self.present += documents - counts.count(0)
            self.lists = self.lists or max(counts) > 1
        self.values += len(values)
        self._pieces.append(_Piece(documents, len(values), begin, counts is not None))

    def pieces(
        self, table: npt.NDArray[np.int32]
    ) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int32]]]:
        """Yield values of documents in order, end to end, and how many each document has.

        table  of a keyword field the code of each number
        """
        kept = KEPT[self.kind]
        for documents, size, begin, counted in self._pieces:
            middle = begin + size * kept.itemsize
            values = self._spool.read(begin, middle).view(kept)
            counts = np.full(documents, bool(size), _COUNTS)
            if counted:
                end = middle + documents * _COUNTS.itemsize
                counts = self._spool.read(middle, end).view(_COUNTS)
            yield (table[values] if self.kind == "keyword" else values), counts

    def _fit(self, flat: list[object], counts: list[int] | None) -> list[Any]:
        """Take values one by one, with None for each that does not fit."""
        values: list[Any] = []
        at = 0
        for size in repeat(1, len(flat)) if counts is None else counts:
            fits = True
            for value in flat[at : at + size]:
                try:
                    values.append(self._take(value))
                except Misfit as misfit:
                    values.append(None)
                    fits = False
                    if not is_placeholder(value):
                        self.others += 1
                        self.codes += isinstance(misfit, Code)
                        self.reason = self.reason or str(misfit)
            self.misfits += not fits
            at += size
        return values

    def _coded(self, values: list[Any]) -> list[Any]:
        if self.kind != "keyword":
            return values
        numbers, limits = self.texts, self._limits
        new = set(values) - numbers.keys()
        if len(numbers) + len(new) > limits.texts:
            raise Misfit(f"more than {limits.texts:,} different texts")
        for text in new:
            numbers[text] = len(numbers)
        return [numbers[text] for text in values]

    def _append(self, array: npt.NDArray[Any]) -> None:
        self._spool.append(array.view(np.uint8))


def in_order(values: list[Any], counts: list[int] | None) -> tuple[list[Any], list[int]]:
    """Each value of a document once, ascending, blank ones left out; and how many are left."""
    left, sizes = [], []
    at = 0
    for size in repeat(1, len(values)) if counts is None else counts:
        own = values[at : at + size]
        at += size
        if size > 1 or None in own:
            own = sorted({value for value in own if value is not None})
        left += own
        sizes.append(len(own))
    return left, sizes
