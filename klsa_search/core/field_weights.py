"""Weights of fields, written `title^2,text`: how settings and queries name searched fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

TITLE: Final = "title"
TEXT: Final = "text"
DEFAULT: Final = "title^2,text"
DERIVED: Final = "^"
"""Begins the name of a part of a document that is made of its texts; no field can have it."""

MAX_WEIGHT: Final = 16  # limit of the weight of a field in an index: f(t,d) is a sum of weights
MAX_SEARCHED: Final = 100  # limit of the number of searched fields
FieldWeights = str | Mapping[str, float]
"""Weights of fields: `title^3,text`, or `{"title": 3, "text": 1}`."""


def parse_weights(value: object) -> dict[str, float]:
    """Return weights by field: of a mapping, of `name^weight,name`, or of a list of such parts.

    A field without a weight weighs 1. ValueError names what cannot be read.
    """
    if isinstance(value, str):
        parts = [_part(part) for part in value.split(",")] if value.strip() else []
    elif isinstance(value, Mapping):
        parts = [(name, _number(name, weight)) for name, weight in value.items()]
    elif isinstance(value, Iterable):
        parts = [_part(part) for part in value]
    else:
        raise ValueError("give `name^weight,name`, or weights by name")
    weights: dict[str, float] = {}
    for name, weight in parts:
        if not isinstance(name, str) or name != name.strip() or not name:
            raise ValueError(f"the field name {name!r} is blank, padded or not a text")
        if {",", "^"} & set(name):
            raise ValueError(f"the field name {name!r} contains a comma or ^; rename the field")
        if name in weights:
            raise ValueError(f"the field {name!r} is named twice")
        weights[name] = weight
    return weights


def write_weights(weights: Iterable[tuple[str, float]]) -> str:
    """Return weights as text that `parse_weights` reads."""
    return ",".join(name if weight == 1 else f"{name}^{_shown(weight)}" for name, weight in weights)


def _shown(weight: float) -> str:
    return str(int(weight) if isinstance(weight, float) and weight.is_integer() else weight)


class SearchedFields(NamedTuple):
    """The parts of which a document is indexed: title, other fields by name, identifiers, text.

    names    of all parts
    weights  of each part, whole numbers; 0 for a title or text that is not searched
    """

    names: tuple[str, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the searched fields of `title^2,text`, or of a mapping or list; ValueError."""
        weights = parse_weights(value)
        if not weights:
            raise ValueError("name at least one field")
        if len(weights) > MAX_SEARCHED:
            raise ValueError(f"{len(weights)} fields are more than the limit of {MAX_SEARCHED}")
        for name, weight in weights.items():
            if not (float(weight).is_integer() and 1 <= weight <= MAX_WEIGHT):
                raise ValueError(
                    f"the weight of {name!r} must be a whole number from 1 to {MAX_WEIGHT}"
                )
        names = (TITLE, *sorted(weights.keys() - {TITLE, TEXT}), TEXT)
        return cls(names, tuple(int(weights.get(name, 0)) for name in names))

    def with_identifiers(self, kind: str) -> SearchedFields:
        """Return these fields with what is derived of the identifiers of title and text."""
        (*names, text), (*weights, of_text) = self
        return SearchedFields((*names, f"{DERIVED}{kind}", text), (*weights, 1, of_text))

    @property
    def derived(self) -> str | None:
        """Return what is derived of identifiers, as `with_identifiers`; None if nothing is."""
        name = self.names[-2]
        return name.removeprefix(DERIVED) if name.startswith(DERIVED) else None

    @property
    def searched(self) -> tuple[str, ...]:
        """Return the names of the fields that are searched."""
        return tuple(
            name
            for name, weight in zip(*self, strict=True)
            if weight and not name.startswith(DERIVED)
        )

    @property
    def others(self) -> tuple[str, ...]:
        """Return the searched metadata fields."""
        return tuple(name for name in self.names[1:-1] if not name.startswith(DERIVED))

    def __str__(self) -> str:
        """Return them as text, always the same for the same fields and weights."""
        return write_weights(
            (name, weight)
            for name, weight in zip(*self, strict=True)
            if weight and not name.startswith(DERIVED)
        )


def _part(part: Any) -> tuple[str, float]:
    """Return name and weight of one part of a text."""
    if not isinstance(part, str):
        raise ValueError(f"{part!r} is not a text; give `name^weight`")
    name, caret, weight = part.partition("^")
    return name.strip(), _number(name, weight) if caret else 1.0


def _number(name: str, weight: Any) -> float:
    try:
        if isinstance(weight, bool):
            raise ValueError
        return float(weight)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"the weight of {name!r} is {weight!r}, which is not a number") from None
