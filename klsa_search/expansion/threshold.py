"""top_z: keep the z largest entries of a kernel row [KLSA §3.3]."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions


def top_z(row: npt.NDArray[Any], z: int) -> tuple[Positions, npt.NDArray[Any]]:
    """Return positions and values of the z largest positive entries, largest first.

    Ties go by document order; fewer than z are returned where fewer are above 0.
    Cost O(N + z log z).
    """
    held = np.flatnonzero(row > 0)
    values = row[held]
    if len(held) > z:
        threshold = np.partition(values, len(held) - z)[len(held) - z]
        above = held[values > threshold]
        level = held[values == threshold][: z - len(above)]
        held = np.sort(np.concatenate((above, level)))
        values = row[held]
    order = np.argsort(-values, kind="stable")
    return held[order], values[order]
