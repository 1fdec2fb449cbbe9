"""Arguments of the estimators, checked at `fit` as scikit-learn asks for."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from klsa_search.errors import ArgumentError


def checked_number(
    name: str,
    value: Any,
    least: float,
    most: float = float("inf"),
    *,
    open_below: bool = False,
    open_above: bool = False,
) -> float:
    """Return `value` as a float; ArgumentError where it is no number of the interval."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number > least if open_below else number >= least
        below = number < most if open_above else number <= most
        if above and below:
            return number
    left, right = "(" if open_below else "[", ")" if open_above or most == float("inf") else "]"
    raise ArgumentError(
        f"{name} = {value!r} is outside {left}{least:g}, {most:g}{right}; choose a number within",
        field=name,
    )


def check_rank(n_components: int | None, rank: int, N: int) -> None:
    """Meet the components asked for with those the kernel of N rows has; ArgumentError."""
    if rank == 0:
        raise ArgumentError(
            f"X: the kernel of its {N} rows is all 0; remove empty documents, or "
            "check the features",
            field="X",
        )
    if n_components is not None and rank < n_components:
        raise ArgumentError(
            f"n_components = {n_components} is above {rank}, the rank of the "
            f"kernel of these {N} rows; choose at most that, or None for all",
            field="n_components",
        )


def checked_count(name: str, value: Any, most: int, of_what: str) -> int:
    """Return `value` as an int of 1 to `most`; None stands for `most`; ArgumentError beyond."""
    if value is None:
        return most
    if isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most:
        return int(value)
    raise ArgumentError(
        f"{name} = {value!r} is outside 1..{most}, {of_what}; choose a whole "
        "number within, or None for all",
        field=name,
    )
