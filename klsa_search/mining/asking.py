"""What every way of asking refuses, in the same words."""

from __future__ import annotations

import numpy as np

from klsa_search.errors import QueryError
from klsa_search.expansion.latent import LatentSpace
from klsa_search.search.index import Index


def share(name: str, value: object) -> float:
    """Take a number above 0 and up to 1; QueryError for any other."""
    if isinstance(value, float | int | np.floating) and not isinstance(value, bool):
        number = float(value)
        if 0 < number <= 1:
            return number
    raise QueryError(f"{name} = {value!r} is not a number above 0 and up to 1", field=name)


def latent_space(index: Index, *, field: str = "index", otherwise: str = "") -> LatentSpace:
    """Give the latent space of an index; QueryError if it was built without.

    field, otherwise  the argument at fault, and what may be asked for instead
    """
    space = index.arrays.latent
    if space is None:
        raise QueryError(
            f"index `{index.name}` was built without the latent part, which this "
            f"needs; {otherwise}rebuild it with --latent above 0",
            field=field,
        )
    return space
