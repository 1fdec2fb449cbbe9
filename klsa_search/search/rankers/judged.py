"""Relevance feedback: a ranking moved towards positive examples, away from negative ones.

    s' = s / |s| + .75 · E+ / |E+| - .15 · E- / |E-|,   E± = Σ_d D(d, ·) over positive and negative

as Rocchio moves a query [1971; Manning, Raghavan & Schütze 2008, §9.1, whose weights these are],
but in the space of the documents, by the expansion D: positive examples need not share a word with
what they bring up. |·| is the length over the first documents of s, and of the positive ones where
nothing is asked; every part is cut at 0 first.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.expansion.threshold import top_z
from klsa_search.search.snapshot import Snapshot

POSITIVE: Final = 0.75
NEGATIVE: Final = 0.15


def moved(
    snapshot: Snapshot,
    scores: Scores,
    positive: Positions,
    negative: Positions,
    parameters: SearchSettings,
    dimensions: int,
) -> Scores:
    """Move the scores of all documents, (N,), by some that were judged; 0 where none is left.

    Cost: that of an expansion by so many seeds, each of positive and negative.
    """
    first = top_z(scores, parameters.z)[0]
    first = first if len(first) else positive
    found = unit_length(scores, first)
    for judged, weight in ((positive, POSITIVE), (negative, -NEGATIVE)):
        if len(judged):
            expansion = snapshot.expansion_of(parameters, dimensions)
            part = expansion.expand(judged, np.ones(len(judged), np.float32))
            found += np.float32(weight) * unit_length(part, first)
    found = np.maximum(found, 0)
    return found if snapshot.living is None else found * snapshot.living.allowed


def unit_length(part: Scores, first: Positions) -> Scores:
    """Cut scores at 0 and scale them to length 1 over some documents.

    Scores that are 0 at all of these say nothing that can be weighed, and keep their length.
    """
    positive = np.maximum(part, 0)
    at_first = positive[first]
    # Not by BLAS, whose bits change with its threads.
    length = np.sqrt(np.einsum("n,n->", at_first, at_first, dtype=np.float64))
    return positive / np.float32(length) if length else positive
