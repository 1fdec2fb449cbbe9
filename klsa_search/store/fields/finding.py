"""Make masks of a column part by part, so that no array of all documents need be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.config import FieldType
from klsa_search.errors import QueryError
from klsa_search.store.fields import asking
from klsa_search.store.fields.making import MISSING
from klsa_search.store.fields.texts import Texts

Mask = npt.NDArray[np.bool_]
Inclusive = Literal["both", "low", "high", "neither"]
Finder = Callable[[int, int], Mask]
"""Makes the part of a mask from one position to before another, in new memory."""


class Finding:
    """What is asked of a column, made ready to be looked for; its arguments as of `Field`."""

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        values: npt.NDArray[Any],
        starts: Positions | None,
        texts: Texts,
    ) -> None:
        self._name = name
        self._type: FieldType = type
        self._values, self._starts, self._texts = values, starts, texts

    def present(self) -> Finder:
        """See `Field.present`."""
        starts = self._starts
        if starts is not None:
            return lambda first, after: starts[first + 1 : after + 1] > starts[first:after]
        if self._type == "number":
            return self._of(lambda values: values == values)  # NaN is not
        missing = MISSING[self._type]
        return self._of(lambda values: values != missing)

    def any_of(self, values: Iterable[object]) -> Finder:
        """See `Field.any_of`."""
        if isinstance(values, str):
            raise QueryError(
                f"values = {values!r} is a text; give a list of values", field=self._name
            )
        if self._type == "keyword":
            codes = {self._texts.code(asking.text(self._name, value)) for value in values}
            # The last stands for -1, and is never asked for.
            table = np.zeros(len(self._texts) + 1, np.bool_)
            table[[code for code in codes if code is not None]] = True
            return self._of(lambda held: table[held])
        spans = sorted({self._span(value) for value in values})
        if not spans:
            return lambda first, after: np.zeros(after - first, np.bool_)
        if len(spans) == 1:
            return self._within(*spans[0])
        begins, ends = np.array(spans, self._values.dtype).T
        # The last end of all spans that begin up to a value says whether one contains it.
        last = np.maximum.accumulate(ends)

        def among(held: npt.NDArray[Any]) -> Mask:
            begun = np.searchsorted(begins, held, "right") - 1
            return np.asarray((begun >= 0) & (held <= last[begun]))

        return self._of(among)

    def between(
        self, low: object = None, high: object = None, *, inclusive: Inclusive = "both"
    ) -> Finder:
        """See `Field.between`."""
        if self._type == "keyword":
            raise QueryError(
                f"{self._name!r} is a keyword field, which has no ranges; use its values",
                field=self._name,
            )
        first = last = None
        if low is not None:
            # What a bound that is left out leaves is what comes after the last that equals it.
            first = self._span(low)[0 if inclusive in ("both", "low") else 1]
        if high is not None:
            last = self._span(high)[1 if inclusive in ("both", "high") else 0]
        return self._within(first, last, inclusive)

    def containing(self, text: str) -> Finder:
        """See `Field.containing`."""
        if self._type != "keyword":
            raise QueryError(
                f"{self._name!r} is a {self._type} field, which cannot contain "
                "texts; use its values",
                field=self._name,
            )
        sought = text.casefold()
        table = np.zeros(len(self._texts) + 1, np.bool_)
        table[:-1] = [sought in held.casefold() for held in self._texts]
        return self._of(lambda held: table[held])

    def _span(self, value: object) -> tuple[float, float]:
        ask = asking.numbers if self._type == "number" else asking.moments
        return ask(self._name, value)

    def _within(
        self, first: float | None, last: float | None, inclusive: Inclusive = "both"
    ) -> Finder:
        """Values within bounds; those that stand for none never are.

        With one look at the values a bound: NaN is within none, what stands for no date below all.
        """
        above = np.greater_equal if inclusive in ("both", "low") else np.greater
        below = np.less_equal if inclusive in ("both", "high") else np.less
        if first is None and self._type == "date":
            first, above = MISSING["date"], np.greater
        if first is not None and last is not None:
            low, high = first, last
            return self._of(lambda values: above(values, low) & below(values, high))
        if first is not None:
            low = first
            return self._of(lambda values: above(values, low))
        if last is not None:
            high = last
            return self._of(lambda values: below(values, high))
        return self.present()

    def _of(self, find: Callable[[npt.NDArray[Any]], Mask]) -> Finder:
        """Documents of which some value is found."""
        values, starts = self._values, self._starts
        if starts is None:
            return lambda first, after: find(values[first:after])

        def found(first: int, after: int) -> Mask:
            begins = starts[first : after + 1]
            before = np.zeros(begins[-1] - begins[0] + 1, np.int64)
            np.cumsum(find(values[begins[0] : begins[-1]]), out=before[1:])
            up_to = before[begins - begins[0]]
            return np.asarray(up_to[1:] > up_to[:-1])

        return found
