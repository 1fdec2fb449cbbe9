"""The parts of scores of the default ranking, and what they consist of.

The parts are expansion (E), coverage (T), latent (L) and lexical (X): see `search.rankers.klsa`.
Those of documents far from the first are estimates: E from the rows of the seeds, T without
neighbours, X as 0. The engine says which parts of a score are estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Numbers, Scores, values_at
from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank.expansion_matrix import Expansion
from klsa_search.search.engine.engine import Exact, ScoreDetails, SeedRows
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.boosted_bm25 import boosted_bm25, boosted_postings
from klsa_search.search.rankers.coverage import HALF, NEIGHBOURHOOD
from klsa_search.search.rankers.klsa import Parts, parts_of

Values = npt.NDArray[np.float64]


def query_weights(snapshot: Snapshot, query: QueryTerms) -> Values:
    """Return the weights of the terms of a query, h(t) · w(t) · f(t, q): (n,)."""
    weights = snapshot.query_kernel.term_weights(query.numbers)
    return np.asarray(query.counts.astype(np.float64) * weights)


def addends_of(
    snapshot: Snapshot,
    query: QueryTerms,
    documents: DocIds,
    parameters: RankingSettings | None = None,
) -> Values:
    """Return the addends of k_q: (d, n), equal to those of the scores to the bit.

    parameters  of the search, for its boosts
    Cost: a look-up for each; with boosts, the postings of the terms.
    """
    kernel = snapshot.query_kernel
    if parameters is None or not parameters.boost_factors:
        saturations = snapshot.bm25_engine.saturations(query.numbers, documents)
    else:
        saturations = np.zeros((len(documents), len(query.numbers)), np.uint16)
        for column, term in enumerate(query.numbers.tolist()):
            postings = boosted_postings(snapshot, term, parameters)
            saturations[:, column] = values_at(documents, *postings)
    weights = kernel.quantised_weights(query.numbers, query.counts)
    steps = 1 + ((weights * saturations.astype(np.int64)) >> 16)
    return np.where((saturations > 0) & (query.counts > 0), kernel.postings.step * steps, 0.0)


NOT_NAMED: Final = -1
"""A neighbour in another partition whose ID is not known."""


class TermCoverage(NamedTuple):
    """T of one document, by term.

    terms    (n,) term numbers
    value    (n,) what each adds to the score
    of_document  (n,) what it adds to k_q
    neighbours  (d,) as of `ScoreDetails`; `NOT_NAMED` for some
    lent     (d, n) what each lends to `of_document`
    """

    terms: Numbers
    value: Values
    of_document: Values
    neighbours: DocIds
    lent: Values


class ScoreParts(NamedTuple):
    """The parts of a score, in units of the score.

    lexical    1 - α times X
    covered    None if coverage has no share, as `latent`
    seeds      (z,) doc ids with their weights, in the order of the query kernel; none if they are
               of several partitions
    by_seed    (z,) what each adds to `expansion`
    estimated  names of parts that are estimates
    """

    alpha: float
    lexical: float
    covered: TermCoverage | None
    latent: float | None
    expansion: float
    seeds: DocIds
    weights: Scores
    by_seed: Scores
    estimated: tuple[str, ...] = ()


def engine_parts(
    details: ScoreDetails,
    terms: Numbers,
    step: float,
    parameters: RankingSettings,
    rows: tuple[SeedRows, Numbers],
) -> Iterator[ScoreParts]:
    """Yield the parts of scores by the engine.

    terms  distinct terms of the query, in its order
    step   value of one step of k_q
    rows   of the seeds, and the ordinals of the documents
    """
    seed_rows, ordinals = rows
    weights = details.weights / details.weights.max(initial=0)
    for at, ordinal in enumerate(ordinals):
        exact = Exact(int(details.exact[at]))
        by_seed, expansion = details.by_seed[at], float(details.expansion[at])
        if Exact.EXPANSION not in exact:  # from the rows of the seeds
            entries = seed_rows.values * seed_rows.levels * (seed_rows.documents == ordinal)
            by_seed = details.weights * entries.sum(axis=1)
            by_seed *= expansion / max(float(by_seed.sum()), 1e-300)
        yield ScoreParts(
            alpha=details.alpha,
            lexical=float(details.lexical[at]),
            covered=_covered(details, at, terms, step) if parameters.coverage else None,
            latent=float(details.latent[at]) if parameters.latent else None,
            expansion=expansion,
            seeds=details.seeds,
            weights=weights,
            by_seed=by_seed,
            estimated=tuple(str(part.name).lower() for part in Exact.ALL & ~exact),
        )


def _covered(details: ScoreDetails, at: int, terms: Numbers, step: float) -> TermCoverage:
    has_lent = details.neighbours[at] != -1
    return TermCoverage(
        terms,
        details.coverage[at].astype(np.float64),
        step * details.impacts[at].astype(np.float64),
        details.neighbours[at][has_lent],
        step * details.lent[at][has_lent].astype(np.float64),
    )


def ranker_parts(
    snapshot: Snapshot,
    query: QueryTerms,
    parameters: RankingSettings,
    evidence: Evidence,
    doc_ids: DocIds,
) -> Iterator[ScoreParts | None]:
    """Return the parts of scores by `rank_klsa`; None if no document has a word of the query.

    evidence  adds up what depends on the documents of all partitions; it is asked at once, as all
              partitions must ask the same
    Seeds of other partitions are not named.
    """
    row = boosted_bm25(snapshot, query, parameters)
    of_all = parts_of(snapshot, query, row, parameters, evidence)
    if of_all is None:
        return repeat(None)
    expansion = snapshot.expansion_of(parameters)
    return (_parts_at(snapshot, query, of_all, expansion, n) for n in doc_ids.tolist())


def _parts_at(
    snapshot: Snapshot, query: QueryTerms, of_all: Parts, expansion: Expansion, document: int
) -> ScoreParts:
    parts, seeds, weights = of_all.parts, of_all.seeds, of_all.weights
    raw, value = (float(scores[document]) for scores in parts["expansion"])
    by_seed: Scores = np.zeros(len(seeds))
    if raw:
        by_seed = value / raw * weights * expansion.entries(seeds, document).astype(np.float64)
    return ScoreParts(
        alpha=of_all.alpha,
        lexical=float(parts["lexical"].scored[document]),
        covered=_covered_by_row(snapshot, query, of_all, document) if "coverage" in parts else None,
        latent=float(parts["latent"].scored[document]) if "latent" in parts else None,
        expansion=value,
        seeds=seeds,
        weights=weights / weights.max(initial=1e-300),
        by_seed=by_seed,
    )


def _covered_by_row(
    snapshot: Snapshot, query: QueryTerms, of_all: Parts, document: int
) -> TermCoverage:
    """Divide T among the terms: see `search.rankers.coverage`."""
    columns, near = of_all.columns, snapshot.neighbours
    row = slice(near.indptr[document], near.indptr[document + 1])
    positions = values_at(near.indices[row], columns, np.arange(len(columns)), missing=-1)
    counted = positions >= 0
    neighbours, shares = near.indices[row][counted], near.data[row][counted]
    addends = addends_of(snapshot, query, np.array([document]))[0]
    of_document = addends * np.isin([document], columns)
    impacts = of_all.impacts[positions[counted]].astype(np.float64)
    lent = NEIGHBOURHOOD * shares[:, None] * impacts
    steps = snapshot.query_kernel.quantised_weights(query.numbers, query.counts)
    together = of_document + lent.sum(axis=0)
    half = HALF * steps / UNIT
    shares_of_half = together / np.where(half > 0, together + half, 1)
    value = query_weights(snapshot, query) * shares_of_half
    total = float(of_all.parts["coverage"].scored[document])
    value *= total / max(float(value.sum()), 1e-300)
    neighbours = np.where(neighbours < near.shape[0], neighbours, NOT_NAMED)
    return TermCoverage(query.numbers, value, of_document, neighbours, lent)
