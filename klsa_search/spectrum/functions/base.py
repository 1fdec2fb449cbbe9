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
    tail   whether f holds beyond the stored eigenvectors; truncation ends with them
    """

    of: Callable[[Eigenvalues], Eigenvalues]
    value: float
    tail: bool = True

    def slope(self, relative: Eigenvalues) -> float:
        """Slope of the line from f(0) to f of the last stored eigenvalue, 0 without a tail.

        The tail's eigenvalues lie between those two ends, where f is replaced by this line: it
        meets f at the cut, and is f itself where f is linear. The slope at 0 would overshoot
        wherever f bends above 0, squashing most of all.
        """
        if not self.tail or len(relative) == 0:
            return 0.0
        last = relative[-1:]
        return float(((self.of(last) - self.value) / last)[0])
