"""Messages between the coordinator and the shards in the two rounds of a search.

The steps are those of `search.engine.klsa`. In round 1 each shard returns its best documents by the
query kernel, with the data of possible seeds; the coordinator merges them into the seeds of the
query. In round 2 each shard scores its own candidates, and returns for the best what rescoring
would add; the coordinator applies the same rescorings as a single machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
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
    """Round 1: the best documents by the query kernel.

    numbers  term numbers in the order of the query; `query` has the distinct ones
    results  maximum number of documents
    within   maximum number of documents that pass the mask
    best     number of the first of them whose saturations are returned
    seeds    number of the first of these whose rows, features and vectors are returned
    totals   whether to count matching documents
    """

    numbers: Sequence[int]
    query: Query
    results: int
    within: int
    best: int
    seeds: int
    totals: bool


class Rows(NamedTuple):
    """Rows of D with their documents and quantisation steps.

    A document may have two rows: the second has the entries that were written after the build.
    """

    documents: DocIds
    entries: Entries
    steps: Floats


class ShardHits(NamedTuple):
    """The answer of a shard to round 1.

    documents, steps  best documents and their integer scores, best first
    allowed_documents, allowed_steps  those that pass the mask
    total             number of matching documents
    saturations       (best, T) of the distinct terms
    rows, features, vectors  of possible seeds
    """

    documents: DocIds
    steps: npt.NDArray[np.int64]
    allowed_documents: DocIds
    allowed_steps: npt.NDArray[np.int64]
    total: int
    saturations: npt.NDArray[np.uint16]
    rows: Rows
    features: DocFeatures
    vectors: npt.NDArray[np.int8]


class RerankRequest(NamedTuple):
    """Round 2: the part of a query that all shards get.

    best         best documents by the query kernel, ascending; `places` are their ranks
    terms        term impacts of these documents
    compared     scorer of the expansion by the features of the seeds
    place        vector of the query in the latent space
    factors      factors of the parts of a score
    depth        number of candidates to return for rescoring
    seeds        seed documents, which the coordinator scores itself
    count_terms  terms of the query, if candidates without any of them are to be counted
    """

    best: DocIds
    places: npt.NDArray[np.int64]
    terms: TermImpacts
    compared: ExpansionScorer
    place: npt.NDArray[np.int16]
    factors: Factors
    has_coverage: bool
    latent: bool
    cut: bool
    depth: int
    seeds: DocIds
    count_terms: npt.NDArray[np.int64]


class ShardCandidates(NamedTuple):
    """Round 2: the candidates of one shard, ascending.

    scores        scores without latent part and rescoring
    expanded      expansion E by the rows of the seeds
    own_coverage  coverage T by the terms of the document itself
    """

    documents: DocIds
    scores: Floats
    expanded: Floats
    own_coverage: Floats


class RerankScores(NamedTuple):
    """The answer of a shard to round 2: its best candidates, ascending.

    scores     scores before rescoring
    covered    what rescoring by the coverage of neighbours adds
    compared   what rescoring by the features of the seeds adds
    unmatched  number of candidates without a term of the query, if requested
    """

    documents: DocIds
    scores: Floats
    covered: Floats
    compared: Floats
    unmatched: int
