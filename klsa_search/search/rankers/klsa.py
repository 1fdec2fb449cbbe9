"""Kernel LSA: the query kernel, expanded by the documents that it finds.

    score = α(q) · (s_E · E + s_T · T + s_L · L) + (1 - α(q)) · X

    E  expansion  top_z(k_q) · D_f, seeds weighted by (k_q / max)^p and the sixth power of T / max
    T  coverage   of the query's terms by a document and its neighbours, among the best of k_q
    L  latent     cosine of document and query on the first eigenvectors
    X  lexical    k_q, sharpened: (k_q / max)^p'

Each part is clipped at 0 and divided by its length over the seeds, so that α means the same for
every query and every size of collection. The sharpened lexical part limits the expansion: if one
document has by far the highest k_q, it has nearly all of the length; otherwise the length is spread
and the expansion decides. So does

    α(q) = α · (1 - hold_back · c³)

where c is the share of the query, by weight in k_q, that the first document of k_q contains: if it
contains the whole query, its words suffice.

With hold_back = s_T = s_L = 0, p = p' = 1 and no scaling this is
α · top_z(k_q) · D + (1 - α) · k_q, the published formula [KLSA §3.3-3.4] and the preset `paper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.deadlines import check_deadline
from klsa_search.lowrank.coverage import BEST, POWER, coverage, effective_alpha
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.params import KlsaParams
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.bm25 import boosted_bm25
from klsa_search.search.rankers.feedback import unit_length


class Part(NamedTuple):
    """One part of the scores of all documents.

    raw     (N,) before scaling
    scored  (N,) scaled, times its share
    """

    raw: Scores
    scored: Scores


class Parts(NamedTuple):
    """The parts of scores.

    alpha    α(q)
    best     best documents of the query kernel, in order, whose impacts count for T
    seeds    the first of these; `weights` (z,) of each
    parts    by name, in the order of summation
    """

    alpha: float
    best: DocIds
    seeds: DocIds
    weights: Scores
    parts: Mapping[str, Part]


def rank_klsa(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """Score every document by Kernel LSA, exactly; α = 0 is BM25, to the bit.

    Cost: see `Expansion`; O(N · m) for the latent part and the edges of the neighbours for
    coverage.
    """
    row = boosted_bm25(snapshot, query, parameters)
    if parameters.alpha == 0 or not row.any():
        return row
    first, *others = parts_of(snapshot, query, row, parameters, dimensions).parts.values()
    scores = first.scored
    for part in others:
        scores += part.scored
    return scores


def parts_of(
    snapshot: Snapshot,
    query: QueryTerms,
    row: Scores,
    parameters: SearchSettings,
    dimensions: int,
) -> Parts:
    """Return the parts of all scores; `row` is k_q, not all 0. Cost: see `rank_klsa`."""
    best, values = top_z(row, max(BEST, parameters.z))
    seeds, weights = best[: parameters.z], values[: parameters.z]
    weights = weights * (weights / weights[0]) ** np.float32(parameters.sharpness - 1)
    share = snapshot.query_kernel.matched_share(query.numbers, query.counts, int(best[0]))
    alpha = effective_alpha(parameters.alpha, parameters.hold_back, share)
    parts: dict[str, Part] = {}

    def add(name: str, share: float, raw: Scores) -> None:
        check_deadline()
        parts[name] = Part(raw, np.float32(share) * _scaled(raw, seeds, parameters))

    sharp = np.float32(parameters.lexical_sharpness - 1)
    add("lexical", 1 - alpha, row * (row / row.max()) ** sharp)
    if parameters.coverage:
        covered = coverage(
            snapshot.query_kernel, snapshot.neighbours, query.numbers, query.counts, best
        )
        weights = weights * (covered[seeds] / covered[seeds].max()) ** POWER
        add("coverage", alpha * parameters.coverage, covered)
    if parameters.latent:
        counts = query.counts * snapshot.query_kernel.burstiness[query.numbers]
        cosines = snapshot.latent.cosines(query.numbers, counts)
        add("latent", alpha * parameters.latent, cosines)
    expanded = snapshot.expansion_of(parameters, dimensions).expand(seeds, weights)
    add("expansion", alpha * (1 - parameters.coverage - parameters.latent), expanded)
    return Parts(alpha, best, seeds, weights, parts)


def _scaled(part: Scores, seeds: DocIds, parameters: SearchSettings) -> Scores:
    """Clip and scale scores over the seeds, if the parameters require it."""
    return unit_length(part, seeds) if parameters.unit_length else part


def klsa_params(snapshot: Snapshot, parameters: SearchSettings) -> KlsaParams:
    """Return the parameters as the engine takes them."""
    size = max(len(snapshot), snapshot.query_kernel.documents)  # those of other partitions too
    return KlsaParams(
        seeds=min(parameters.z, size),
        best=min(max(BEST, parameters.z), size),
        alpha=parameters.alpha,
        hold_back=parameters.hold_back,
        expansion=1 - parameters.coverage - parameters.latent,
        coverage=parameters.coverage,
        latent=parameters.latent,
        sharpness=parameters.sharpness,
        lexical_sharpness=parameters.lexical_sharpness,
        coverage_power=float(POWER),
        unit_length=parameters.unit_length,
        slope=snapshot.slope,
        mean_square=snapshot.mean_square,
    )
