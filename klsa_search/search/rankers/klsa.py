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
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Numbers, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.parameters import RankingSettings
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.engine import KlsaParams
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.boosted_bm25 import boosted_bm25
from klsa_search.search.rankers.coverage import BEST, POWER, coverage, impacts_of
from klsa_search.search.rankers.feedback import BestDocuments, clipped_length


class ScorePart(NamedTuple):
    """One part of the scores of all documents.

    raw     (N,) before scaling
    scored  (N,) scaled, times its share
    """

    raw: Scores
    scored: Scores


class Parts(NamedTuple):
    """The parts of scores.

    alpha    α(q)
    columns  columns of W of the best documents of the query kernel, ascending; `impacts` (b, n) of
             the terms of the query in each, which count for T
    seeds    the first of the best, without those of other partitions; `weights` (z,) of each
    parts    by name, in the order of summation
    """

    alpha: float
    columns: DocIds
    impacts: npt.NDArray[np.float32]
    seeds: DocIds
    weights: Scores
    parts: Mapping[str, ScorePart]


def effective_alpha(alpha: float, hold_back: float, share: float) -> float:
    """Return α(q) = α · (1 - hold_back · c³), the share of the expansion in the scores of a query.

    share  c, the share of the query that the first document of the query kernel contains
    If one document contains the whole query, expansion adds little.

    >>> effective_alpha(0.7, 0.7, 0.0), round(effective_alpha(0.7, 0.7, 1.0), 2)
    (0.7, 0.21)
    """
    return alpha * (1 - hold_back * (share * share * share))


def rank_klsa(
    snapshot: Snapshot, query: QueryTerms, parameters: RankingSettings, evidence: Evidence
) -> Scores:
    """Score every document by Kernel LSA, exactly; α = 0 is BM25, to the bit.

    Cost: see `Expansion`; O(N · m) for the latent part and the edges of the neighbours for
    coverage.
    """
    row = boosted_bm25(snapshot, query, parameters)
    if parameters.alpha == 0:
        return row
    parts = parts_of(snapshot, query, row, parameters, evidence)
    if parts is None:
        return row
    first, *further = parts.parts.values()
    scores = first.scored
    for part in further:
        scores += part.scored
    return scores


def parts_of(
    snapshot: Snapshot,
    query: QueryTerms,
    row: Scores,
    parameters: RankingSettings,
    evidence: Evidence,
) -> Parts | None:
    """Return the parts of all scores; None if no document has a word of the query.

    row    k_q
    evidence  adds up what depends on the documents of all partitions
    Cost: see `rank_klsa`.
    """
    count = max(BEST, parameters.z)
    best = evidence.total(("best",), lambda: _best_of(snapshot, query, row, count))
    if not len(best.scores):
        return None
    z = min(parameters.z, len(best.scores))
    local = np.flatnonzero(best.partitions[:z] == snapshot.partition)
    seeds = best.values["doc_ids"][local]

    def at_seeds(name: str, *parts: Scores) -> Scores:
        """Return parts at all seeds: (p, z)."""
        at = np.zeros((len(parts), z), np.float32)
        at[:, local] = [part[seeds] for part in parts]
        return evidence.total((name,), lambda: at)

    weights, highest = best.scores[:z], best.scores[0]
    share_of_first = float(best.values["matched_shares"][0])
    alpha = effective_alpha(parameters.alpha, parameters.hold_back, share_of_first)
    sharp = parameters.lexical_sharpness - 1
    columns, impacts = counted = _counted(snapshot, query, best)
    kernel, numbers = snapshot.query_kernel, query.numbers
    covered = coverage(kernel, snapshot.neighbours, numbers, query.counts, counted)
    cosines = snapshot.latent.cosines(numbers, query.counts * kernel.burstiness(numbers))
    at_covered, at_cosines = at_seeds("coverage and latent", covered, cosines)
    parts: dict[str, ScorePart] = {}

    def add(name: str, share: float, raw: Scores, at: Scores) -> None:
        check_deadline()
        scored = raw
        if parameters.unit_length:
            length = clipped_length(at)
            scored = np.maximum(raw, 0)
            scored = scored / np.float32(length) if length else scored
        parts[name] = ScorePart(raw, np.float32(share) * scored)

    add(
        "lexical",
        1 - alpha,
        row * _power(row / highest, sharp),
        weights * _power(weights / highest, sharp),
    )
    weights = weights * _power(weights / highest, parameters.sharpness - 1)
    if parameters.coverage:
        weights = weights * _power(at_covered / at_covered.max(), float(POWER))
        add("coverage", alpha * parameters.coverage, covered, at_covered)
    if parameters.latent:
        add("latent", alpha * parameters.latent, cosines, at_cosines)
    expanded = snapshot.expansion_of(parameters).expand(
        seeds, weights[local], lambda sums: evidence.total(("sums of features",), lambda: sums)
    )
    (at_expanded,) = at_seeds("expansion", expanded)
    share = alpha * (1 - parameters.coverage - parameters.latent)
    add("expansion", share, expanded, at_expanded)
    return Parts(alpha, columns, impacts, seeds, weights[local], parts)


def _power(values: Scores, exponent: float) -> Scores:
    """Return powers of values, rounded from double precision: NumPy's own differ by processor."""
    return (values.astype(np.float64) ** exponent).astype(np.float32)


def _best_of(snapshot: Snapshot, query: QueryTerms, row: Scores, count: int) -> BestDocuments:
    """Return the best documents of a snapshot, and of each:

    doc_ids         its doc id
    impacts         (n,) of the terms of the query, in the order of their texts
    matched_shares  share of the query that it contains, of the first; 0 for all after it
    """
    kernel = snapshot.query_kernel
    doc_ids, scores = largest_entries(row, count)
    ascending = np.argsort(doc_ids)
    impacts = np.empty((len(doc_ids), len(query.numbers)), np.float32)
    impacts[ascending] = impacts_of(kernel, query.numbers, query.counts, doc_ids[ascending])
    shares = np.zeros(len(doc_ids))
    if len(doc_ids):
        shares[0] = kernel.matched_share(query.numbers, query.counts, int(doc_ids[0]))
    values: dict[str, npt.NDArray[np.generic]] = {
        "doc_ids": doc_ids.astype(np.int64),
        "impacts": impacts[:, _order_of_texts(snapshot, query)],
        "matched_shares": shares,
    }
    return BestDocuments.of(snapshot, doc_ids, scores, count, values)


def _counted(
    snapshot: Snapshot, query: QueryTerms, best: BestDocuments
) -> tuple[DocIds, npt.NDArray[np.float32]]:
    is_here = best.partitions == snapshot.partition
    columns = np.where(is_here, best.values["doc_ids"], -1)
    if not is_here.all():
        remote = snapshot.remote_ordinals
        at = np.searchsorted(remote, best.ordinals)
        is_remote = ~is_here & np.isin(best.ordinals, remote)
        columns[is_remote] = len(snapshot) + at[is_remote]
    order = np.argsort(columns, kind="stable")
    order = order[columns[order] >= 0]
    by_texts = best.values["impacts"]
    impacts = np.empty_like(by_texts)
    impacts[:, _order_of_texts(snapshot, query)] = by_texts
    return columns[order], impacts[order]


def _order_of_texts(snapshot: Snapshot, query: QueryTerms) -> Numbers:
    """Return the order of the terms of a query by text, which is the same in all partitions."""
    terms = snapshot.vocabulary.terms
    return np.argsort([terms[number] for number in query.numbers.tolist()], kind="stable")


def klsa_params(snapshot: Snapshot, parameters: RankingSettings) -> KlsaParams:
    """Return the parameters as the engine takes them."""
    size = max(
        len(snapshot), snapshot.query_kernel.counts.documents
    )  # those of other partitions too
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
        mean_square=snapshot.sparse_expansion.built.mean_square,
    )
