"""What is asked of shards and what they answer, in the two rounds of a search.

A query is gone through as one machine goes through it (`search.engine.klsa`). First every shard
returns its best documents by the query kernel, and what others need of them: from them all
seeds are known. Then every shard scores its own candidates, and returns for the best what each
closer look would add; who asked takes the closer looks that one machine would have taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.search.engine.formulas import (
    DocFeatures,
    Entries,
    ExpansionScorer,
    Factors,
    Query,
    TermImpacts,
)

Floats = npt.NDArray[np.float32]


class ShardRequest(NamedTuple):
    """The first round: the best documents of the query kernel.

    numbers  terms as they stand in the query; `query` the distinct ones
    results  documents, at most
    within   documents that a mask leaves, at most
    best     the first of them, whose terms are returned
    seeds    the first of these, whose rows, features and vectors are returned
    totals   whether to count
    """

    numbers: Sequence[int]
    query: Query
    results: int
    within: int
    best: int
    seeds: int
    totals: bool


class Rows(NamedTuple):
    """Rows of D of some documents: of each its entries, what a level is worth, and its document.

    A document may have two: entries that came later have a row of their own, after the first.
    """

    documents: Positions
    entries: Entries
    steps: Floats


class Found(NamedTuple):
    """An answer to the first round.

    documents, steps  the best, best first; `allowed_documents`, `allowed_steps` those within a mask
    total             documents that may be answered and hold a term
    saturations       (best, T) of the distinct terms
    rows, features, cards  of the seeds
    """

    documents: Positions
    steps: npt.NDArray[np.int64]
    allowed_documents: Positions
    allowed_steps: npt.NDArray[np.int64]
    total: int
    saturations: npt.NDArray[np.uint16]
    rows: Rows
    features: DocFeatures
    cards: npt.NDArray[np.int8]


class Known(NamedTuple):
    """What all shards get for a query in the second round.

    best      the best of the query kernel in ascending order, `places` which each is
    terms     what they hold
    compared  the features of the seeds
    place     of the query in the latent space
    factors   what each part counts for
    foremost  candidates that may be looked at closer
    seeds     whose scores are known
    counted   terms of the query, if the candidates that contain none of them are to be counted
    """

    best: Positions
    places: npt.NDArray[np.int64]
    terms: TermImpacts
    compared: ExpansionScorer
    place: npt.NDArray[np.int16]
    factors: Factors
    covers: bool
    latent: bool
    cut: bool
    foremost: int
    seeds: Positions
    counted: npt.NDArray[np.int64]


class Candidates(NamedTuple):
    """What the second round asks of one shard: documents of its own, ascending.

    scores    what is known of each score
    expanded  E by the rows of the seeds; `alone` T by what a document holds itself
    """

    documents: Positions
    scores: Floats
    expanded: Floats
    alone: Floats


class Scored(NamedTuple):
    """An answer to the second round: the foremost of the candidates, in ascending order.

    scores    the first ones
    covered   what a look at what is near adds, `compared` what one at the features adds
    without   candidates that contain no term of the query, if they are counted
    """

    documents: Positions
    scores: Floats
    covered: Floats
    compared: Floats
    without: int
