"""Parameters of a search, checked against one state of an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import numpy as np

from klsa_search.core.arguments import kind_of
from klsa_search.core.config import unsearched
from klsa_search.core.field_weights import parse_weights, write_weights
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parameters import ParsingSettings, RankingSettings
from klsa_search.errors import QueryError, SettingsError
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers import needs_eigenvectors, ranker_of

_CACHE_SIZE: Final = 1000
"""Validated sets of parameters that are cached."""

_INTEGERS: Final = (int, np.integer)

_Group = TypeVar("_Group", ParsingSettings, RankingSettings)


class Parameters:
    """Validates the parameters of each call; those not given are those of the index."""

    def __init__(
        self,
        name: str,
        defaults: RankingSettings,
        parsing: ParsingSettings,
        snapshot: Snapshot,
    ) -> None:
        self._name, self._defaults, self._snapshot = name, defaults, snapshot
        self._parsing = parsing
        self._checked: dict[tuple[Any, ...], tuple[ParsingSettings, RankingSettings]] = {}

    def read(self, values: Mapping[str, object]) -> tuple[ParsingSettings, RankingSettings]:
        """Return checked parameters, for parsing and for ranking; 50 µs, or 1 µs if cached."""
        if not values:
            return self._parsing, self._defaults
        # 1, 1.0 and True are equal, but not all are valid: the key includes the type.
        key = tuple(
            [
                (name, type(value), tuple(value.items()) if isinstance(value, dict) else value)
                for name, value in values.items()
            ]
        )
        try:
            return self._checked[key]
        except (KeyError, TypeError):  # not cached, or not hashable
            changes = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in values.items()
                if value is not None
            }
            of_parsing = changes.keys() & ParsingSettings.model_fields.keys()
            read = {name: changes.pop(name) for name in of_parsing}
            parsing = _changed(self._parsing, read) if read else self._parsing
            chosen = self._check(changes)
            if chosen == self._defaults:
                chosen = self._defaults  # the same object, which callers compare
        if len(self._checked) >= _CACHE_SIZE:
            self._checked.clear()
        self._checked[key] = parsing, chosen
        return parsing, chosen

    def used(self, ranking: RankingSettings) -> dict[str, Any]:
        """Return the parameters that a ranking uses, by name."""
        return dict(self._used_by_default if ranking is self._defaults else self._used(ranking))

    @lazy_property
    def _used_by_default(self) -> dict[str, Any]:
        return self._used(self._defaults)

    def _used(self, ranking: RankingSettings) -> dict[str, Any]:
        names = ranker_of(ranking.ranker).parameters
        used = {name: getattr(ranking, name) for name in names}
        if "dimensions" in used:
            used["dimensions"] = min(ranking.dimensions, built_dimensions(self._snapshot, ranking))
        return used

    def _check(self, changes: Mapping[str, Any]) -> RankingSettings:
        chosen = _changed(self._defaults, changes)
        if chosen.boosts:
            reason = unsearched(parse_weights(chosen.boosts), self._snapshot.forward.fields)
            if reason is not None:
                raise QueryError(f"boosts = {chosen.boosts!r}: {reason}", field="boosts")
            boosts = write_weights(chosen.boost_factors.items())  # those of factor 1 are checked
            chosen = chosen.model_copy(update={"boosts": boosts})
        field: str | None = needs_eigenvectors(chosen)
        undivided = "" if self._snapshot.collection is None else "one partition and "
        advice = f"rebuild it with {undivided}--{field} {getattr(chosen, field)}" if field else ""
        if field is None and "dimensions" in changes:
            field, advice = "dimensions", "leave dimensions out"
        if field is not None and not self._snapshot.has_spectrum:
            raise QueryError(
                f"{field} = {getattr(chosen, field)} is not available: index `{self._name}` does "
                f"not have the eigenvectors of all its documents; {advice}",
                field=field,
            )
        requested = changes.get("dimensions")
        if requested:
            built = built_dimensions(self._snapshot, chosen)
            if requested > max(built, 1):
                raise QueryError(
                    f"dimensions = {requested} is more than the {built} that index "
                    f"`{self._name}` was built with; use fewer, or rebuild it with more",
                    field="dimensions",
                )
        return chosen


def _changed(settings: _Group, changes: Mapping[str, object]) -> _Group:
    try:
        return type(settings).checked({**settings.model_dump(), **changes})
    except SettingsError as error:
        raise QueryError(error.message, field=error.field) from None


def built_dimensions(snapshot: Snapshot, parameters: RankingSettings) -> int:
    """Return the number of eigenvectors that a ranking can use."""
    if not snapshot.has_spectrum:
        return len(snapshot.eigenvalues)
    by_lsi = ranker_of(parameters.ranker).scores_by == "lsi"
    basis = snapshot.lsi.arrays.basis if by_lsi else snapshot.eigenvectors
    return int(basis.shape[1])


def checked_mask(mask: object, max_doc: int) -> Mask | None:
    """Return a mask of documents, None for all; QueryError.

    mask  (max_doc,) bool, or (n,) distinct doc ids
    """
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray):
        fact = kind_of(mask)
    elif mask.dtype == np.bool_ and mask.shape == (max_doc,):
        return Mask(mask)
    elif mask.ndim != 1 or not np.issubdtype(mask.dtype, np.integer):
        fact = f"of shape {mask.shape} and type {mask.dtype}"
    elif len(mask) and not (mask.min() >= 0 and mask.max() < max_doc):
        fact = "of doc ids that the index does not have"
    elif len(np.unique(mask)) < len(mask):
        fact = "of doc ids, and has one twice"
    else:
        return Mask(np.isin(np.arange(max_doc), mask))
    raise QueryError(
        f"mask is {fact}; give distinct doc ids, or a bool array of length max_doc = {max_doc}",
        field="mask",
    )


def checked_integer(name: str, value: object) -> int:
    """Return a Python or NumPy integer of at least 1; QueryError."""
    if isinstance(value, _INTEGERS) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise QueryError(f"{name} = {value!r}: give a whole number of at least 1", field=name)
