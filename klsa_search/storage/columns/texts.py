"""Distinct texts of a keyword field, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from klsa_search.core.cached import lazy_property


class KeywordTexts(Sequence[str]):
    """The distinct texts of a keyword field, in the order of code points; decoded on access.

    content  uint8, texts in UTF-8
    starts   start of each, and the end of the last
    """

    def __init__(self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self._content, self._starts = content, starts

    def __len__(self) -> int:
        """Return their number."""
        return len(self._starts) - 1

    @property
    def size(self) -> int:
        """Return the bytes of all texts."""
        return int(self._starts[-1] - self._starts[0])

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        """Return the text of a code."""
        if isinstance(code, slice):
            return [self[index] for index in range(*code.indices(len(self)))]
        return self._encoded(range(len(self))[code]).decode()

    def code(self, text: str) -> int | None:
        """Return the code of a text, or None. Cost: binary search."""
        # UTF-8 has the order of code points.
        encoded = text.encode(errors="surrogatepass")
        code = bisect_left(range(len(self)), encoded, key=self._encoded)
        return code if code < len(self) and self._encoded(code) == encoded else None

    def containing(self, text: str) -> npt.NDArray[np.bool_]:
        """Return which texts contain this, ignoring case: a bool for each code.

        Cost: 1 ns a byte of all texts; the first call folds them, 0.5 µs a text, which takes as
        much memory as they do.
        """
        content, starts = self._folded
        # A byte of UTF-8 that begins a character is never inside another one.
        wanted = text.casefold().encode(errors="surrogatepass")
        mask = np.full(len(self), not wanted)
        if not wanted or len(wanted) > len(content):
            return mask
        positions = np.flatnonzero(content[: len(content) - len(wanted) + 1] == wanted[0])
        for offset, byte in enumerate(wanted[1:], 1):
            positions = positions[content[positions + offset] == byte]
            if not len(positions):
                return mask
        codes = np.searchsorted(starts, positions, "right") - 1
        mask[codes[positions + len(wanted) <= starts[codes + 1]]] = True
        return mask

    @lazy_property
    def _folded(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The texts without differences of case, concatenated, and their starts, as of the texts.

        Made together, so that texts need not be folded at each use.
        """
        folded = [self[code].casefold().encode() for code in range(len(self))]
        starts = np.cumsum([0, *map(len, folded)], dtype=np.int64)
        return np.frombuffer(b"".join(folded), np.uint8), starts

    def _encoded(self, code: int) -> bytes:
        return self._content[self._starts[code] : self._starts[code + 1]].tobytes()


def texts_of(texts: Sequence[str]) -> KeywordTexts:
    """Return texts, which are in the order of code points, as stored by a column."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return KeywordTexts(np.frombuffer(b"".join(encoded), np.uint8), starts)
