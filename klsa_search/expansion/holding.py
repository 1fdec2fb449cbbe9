"""How much of the expansion is held back where words suffice."""

from __future__ import annotations


def held_back(alpha: float, hold_back: float, share: float) -> float:
    """α(q) = α · (1 - hold_back · c³): the share of the expansion in a query's scores.

    share  c, how much of the query the first document of the query kernel holds, from 0 to 1
    Where one document holds the whole query, what others say of its words adds little; where none
    does, expansion has to find what was meant.

    >>> held_back(0.7, 0.7, 0.0), round(held_back(0.7, 0.7, 1.0), 2)
    (0.7, 0.21)
    """
    return alpha * (1 - hold_back * (share * share * share))
