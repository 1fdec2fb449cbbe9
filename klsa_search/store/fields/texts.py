"""The texts of a keyword field, as bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt


class Texts(Sequence[str]):
    """The different texts of a keyword field, ascending by code points; read as they are asked for.

    content  uint8, texts in UTF-8
    starts   where each begins, and where the last ends
    """

    def __init__(self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self._content, self._starts = content, starts

    def __len__(self) -> int:
        """How many there are."""
        return len(self._starts) - 1

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        """Text of a code."""
        if isinstance(code, slice):
            return [self[each] for each in range(*code.indices(len(self)))]
        return self._written(range(len(self))[code]).decode()

    def code(self, text: str) -> int | None:
        """Code of a text; None if no document holds it. Cost: the logarithm of their number."""
        # Bytes of UTF-8 are in the order of code points.
        written = text.encode(errors="surrogatepass")
        code = bisect_left(range(len(self)), written, key=self._written)
        return code if code < len(self) and self._written(code) == written else None

    def _written(self, code: int) -> bytes:
        return self._content[self._starts[code] : self._starts[code + 1]].tobytes()


def texts_of(texts: Sequence[str]) -> Texts:
    """Texts, which are ascending by code points, as a column has them."""
    written = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, written)], dtype=np.int64)
    return Texts(np.frombuffer(b"".join(written), np.uint8), starts)
