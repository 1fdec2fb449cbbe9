"""What a function of the spectrum is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klsa_search.arrays import Eigenvalues


@dataclass(frozen=True)
class SpectralFunction:
    """f, with what its tail needs.

    of     λ → f(λ), for eigenvalues divided by the first: within (0, 1]
    value  f(0)
    slope  f'(0)
    """

    of: Callable[[Eigenvalues], Eigenvalues]
    value: float
    slope: float
