"""Columns of fields over documents that were built in and documents that came later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.config import FieldType
from klsa_search.lazily import lazily
from klsa_search.store.fields.columns import Field, finding
from klsa_search.store.fields.finding import Finder, Finding, Inclusive, Mask
from klsa_search.store.fields.making import KEPT, MISSING
from klsa_search.store.fields.texts import Texts, texts_of

_Values = npt.NDArray[Any]
_Parts = Sequence[tuple[int, Field]]


class JoinedField(Field):
    """A field in parts, each of consecutive positions; what lies between them has no value.

    parts   position of the first document and column of each, made when first asked for
    living  (N,) which positions hold a document
    misfits documents with a value that is not of the type
    Masks are made part by part. `values`, `starts` and `texts` are put together when first asked
    for: O(N), and the texts.
    """

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        parts: Callable[[], _Parts],
        living: Mask,
        misfits: int = 0,
    ) -> None:
        self.name = name
        self.type = type
        self.misfits = misfits
        self._make_parts, self._living = parts, living

    def __len__(self) -> int:
        """N, the number of positions."""
        return len(self._living)

    @property
    def missing(self) -> int:
        """Documents without a value."""
        return int(np.count_nonzero(self._living) - np.count_nonzero(self.present()))

    @property
    def values(self) -> _Values:
        """Codes, numbers or microseconds."""
        return self._whole[0]

    @property
    def starts(self) -> Positions | None:
        """Where the values of each document begin; None where none has several."""
        return self._whole[1]

    @property
    def texts(self) -> Texts:
        """Texts of a keyword field that a document holds."""
        return self._whole[2]

    @lazily
    def _parts(self) -> _Parts:
        return self._make_parts()

    def _finding(self) -> Finding:
        return _Joined(self._parts, self._living)

    @lazily
    def _whole(self) -> tuple[_Values, Positions | None, Texts]:
        counts = np.zeros(len(self), np.int64)
        pieces, names = [], []
        for first, part in self._parts:
            living = self._living[first : first + len(part)]
            held = np.diff(part.starts) if part.starts is not None else part.present().astype(int)
            values = part.values if part.starts is not None else part.values[held > 0]
            pieces.append(values[np.repeat(living, held)])
            counts[first : first + len(part)] = held * living
            if self.type == "keyword":
                codes, pieces[-1] = np.unique(pieces[-1], return_inverse=True)
                names.append([part.texts[code] for code in codes.tolist()])
        texts = sorted({text for each in names for text in each})
        if self.type == "keyword":
            codes_of = {text: code for code, text in enumerate(texts)}
            pieces = [
                np.array([codes_of[text] for text in each], np.int32)[piece]
                for each, piece in zip(names, pieces, strict=True)
            ]
        values = np.concatenate(pieces).astype(KEPT[self.type])
        if (counts > 1).any():
            starts = np.concatenate(([0], np.cumsum(counts)))
            return values, starts, texts_of(texts)
        dense = np.full(len(self), MISSING[self.type], KEPT[self.type])
        dense[counts > 0] = values
        return dense, None, texts_of(texts)


class _Joined(Finding):
    """What is asked of all parts."""

    def __init__(self, parts: _Parts, living: Mask) -> None:
        self._parts, self._living = parts, living

    def present(self) -> Finder:
        """See `Field.present`."""
        return self._joined(lambda part: part.present())

    def any_of(self, values: Iterable[object]) -> Finder:
        """See `Field.any_of`."""
        asked = values if isinstance(values, str) else list(values)
        return self._joined(lambda part: part.any_of(asked))

    def between(
        self, low: object = None, high: object = None, *, inclusive: Inclusive = "both"
    ) -> Finder:
        """See `Field.between`."""
        return self._joined(lambda part: part.between(low, high, inclusive=inclusive))

    def containing(self, text: str) -> Finder:
        """See `Field.containing`."""
        return self._joined(lambda part: part.containing(text))

    def _joined(self, of: Callable[[Finding], Finder]) -> Finder:
        finders = [(begin, begin + len(part), of(finding(part))) for begin, part in self._parts]

        def found(first: int, after: int) -> Mask:
            mask = np.zeros(after - first, np.bool_)
            for begin, end, find in finders:
                low, high = max(first, begin), min(after, end)
                if low < high:
                    mask[low - first : high - first] = find(low - begin, high - begin)
            mask &= self._living[first:after]
            return mask

        return found
