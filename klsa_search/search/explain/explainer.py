"""Explain how the score of a document was computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.coverage import Covered, Numbers, QueryWeights, Values
from klsa_search.search.engine.formulas import DocFeatures
from klsa_search.search.engine.shared_seeds import SharedSeeds
from klsa_search.search.explain.explanation import (
    Coverage,
    CoveredTerm,
    Expanded,
    Explanation,
    Latent,
    LatentTerm,
    Lender,
    Lexical,
    Seed,
    SharedTerm,
    TermShare,
    Undivided,
)
from klsa_search.search.explain.parts import EngineSplitter, RowSplitter, ScoreParts, ScoreSplitter
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers import ranker_of
from klsa_search.search.rankers.bm25 import boosted_bm25
from klsa_search.search.rankers.feedback import expand_query
from klsa_search.search.rankers.klsa import klsa_params
from klsa_search.search.rankers.lsi import lsi_terms
from klsa_search.search.snapshot import Snapshot
from klsa_search.storage.documents import DocumentReader

MAX_SHARED: Final = 5
"""Common features of two documents that are reported, at most."""


FeatureValues = tuple[Numbers, Values]
"""Numbers of the features of a document, and their values."""


class Features:
    """Compares documents by features."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def shared(
        self, document: int, others: Sequence[FeatureValues]
    ) -> list[tuple[SharedTerm, ...]]:
        """Return the features that a document shares with others, strongest first.

        Cost: their features, and 25 ns for each pair of terms that is a feature, once per index.
        """
        numbers, values = self.of(document)
        features: list[FeatureValues] = []
        for theirs, weights in others:
            both, mine, other_places = np.intersect1d(
                numbers, theirs, assume_unique=True, return_indices=True
            )
            products = values[mine] * weights[other_places]
            shares = products / max(float(products.sum()), 1e-300)
            features.append((both, shares))
        names = self._names(features)
        result = []
        for both, shares in features:
            first = np.lexsort((both, -shares))
            named = [
                (names[int(both[i])], float(shares[i])) for i in first if int(both[i]) in names
            ]
            result.append(
                tuple(SharedTerm(term=name, share=share) for name, share in named[:MAX_SHARED])
            )
        return result

    def of(self, document: int) -> FeatureValues:
        """Return the features of a document."""
        expansion = self._snapshot.sparse_expansion
        entries = expansion.features[expansion.starts[document] : expansion.starts[document + 1]]
        values = expansion.document_scalars[document, 0] * (entries & np.uint32(LEVELS)).astype(
            np.float64
        )
        return (entries >> np.uint32(8)).astype(np.int64), values

    def _names(self, features: list[FeatureValues]) -> dict[int, str]:
        """Return the names of the strongest features of each document, and possibly of others."""
        terms = self._snapshot.vocabulary.terms
        strongest = [
            numbers[np.lexsort((numbers, -shares))[:MAX_SHARED]] for numbers, shares in features
        ]
        wanted = np.unique(np.concatenate([np.zeros(0, np.int64), *strongest]))
        pairs = self._snapshot.pairs
        size = len(pairs.terms)  # of the build, without later terms
        places = pairs.places[wanted].astype(np.int64)
        lesser = np.searchsorted(pairs.starts, places - size, side="right") - 1
        names: dict[int, str] = {}
        for feature, place, term in zip(
            wanted.tolist(), places.tolist(), lesser.tolist(), strict=True
        ):
            if place < size:
                names[feature] = terms[place]
            else:
                greater = terms[int(pairs.greater[place - size])]
                names[feature] = f"{terms[term]} {greater}"
        return names


MAX_SEEDS: Final = 5
"""Seeds that are reported, and neighbours per term, at most."""

MAX_TERMS: Final = 64
"""Query words up to which the score of a ranker is divided into their scores."""


class Explainer:
    """Explains scores of one query in one state of an index.

    numbers  term numbers in query order
    engine   whether the engine ranks this query
    shared   seeds of several partitions, by which it ranks
    """

    def __init__(
        self,
        snapshot: Snapshot,
        documents: DocumentReader,
        numbers: Sequence[int],
        parameters: SearchSettings,
        dimensions: int,
        *,
        engine: bool,
        shared: SharedSeeds | None = None,
    ) -> None:
        self._snapshot, self._documents = snapshot, documents
        self._ranker, self._dimensions = parameters.ranker, dimensions
        self._query = QueryTerms.of(numbers)
        self._lexical_scores = boosted_bm25(snapshot, self._query, parameters)
        self._query_weights = QueryWeights.boosted(snapshot, self._query, parameters)
        self._feedback_documents: DocIds = np.zeros(0, np.int64)
        feedback = ranker_of(parameters.ranker).feedback
        if feedback is not None and self._lexical_scores.any():
            add_terms, self._feedback_documents = expand_query(
                snapshot, self._query, parameters, feedback
            )
            self._query_weights = QueryWeights.boosted(snapshot, add_terms, parameters)
        self._of_terms: list[Scores] | None = None
        if ranker_of(parameters.ranker).reads_index:
            self._of_terms = self._rank_terms(parameters)
        self._features = Features(snapshot)
        self._splitter: ScoreSplitter | None = None
        is_found = shared is not None or self._lexical_scores.any()  # by a seed that is elsewhere
        if parameters.ranker == "klsa" and parameters.alpha > 0 and is_found:
            self._splitter = (
                EngineSplitter(snapshot, list(numbers), klsa_params(snapshot, parameters), shared)
                if engine
                else RowSplitter(
                    snapshot, self._query, self._lexical_scores, parameters, dimensions
                )
            )

    def of(self, doc_id: int, score: float | None) -> Explanation:
        """Explain the score of a document; `None` for its exact score.

        Cost: the features of the document and of the seeds, and searches in the query's postings.
        """
        (id_,) = self._documents.ids([doc_id])
        if ranker_of(self._ranker).uses_lsi:
            return self._explain_lsi(id_, doc_id, score)
        addends = self._query_weights.addends(np.array([doc_id]))[0]
        bm25 = float(addends.sum())
        if self._of_terms is not None:
            return self._explain_terms(id_, doc_id, score, bm25, self._of_terms)
        if self._splitter is None:
            lexical = Lexical(value=bm25, terms=self._terms(addends, 1.0))
            return Explanation(
                id=id_,
                score=bm25 if score is None else score,
                ranker=self._ranker,
                bm25=bm25,
                alpha=0.0 if self._ranker == "klsa" else None,
                lexical=lexical,
                feedback=tuple(self._documents.ids(self._feedback_documents.tolist())),
            )
        parts = self._splitter.split(doc_id, score)
        covered = 0.0 if parts.covered is None else float(parts.covered.value.sum())
        total = parts.lexical + covered + (parts.latent or 0.0) + parts.expansion
        share = parts.lexical / bm25 if bm25 else 0.0
        return Explanation(
            id=id_,
            score=total if score is None else score,
            ranker=self._ranker,
            bm25=bm25,
            alpha=parts.alpha,
            lexical=Lexical(value=parts.lexical, terms=self._terms(addends, share)),
            coverage=None if parts.covered is None else self._coverage(parts.covered),
            latent=None if parts.latent is None else Latent(value=parts.latent),
            expansion=self._expanded(doc_id, parts),
            estimated=parts.estimated,
        )

    def _rank_terms(self, parameters: SearchSettings) -> list[Scores]:
        """Return the scores of all documents for the query, then for each of its terms alone.

        Only for the query if it has many terms.
        """
        rank, query = ranker_of(parameters.ranker).scores, self._query
        queries = [query]
        if len(query.numbers) <= MAX_TERMS:
            queries += [
                QueryTerms(query.numbers[at : at + 1], query.counts[at : at + 1])
                for at in range(len(query.numbers))
            ]
        return [rank(self._snapshot, one, parameters, self._dimensions) for one in queries]

    def _explain_terms(
        self, id_: str, doc_id: int, score: float | None, bm25: float, of_terms: list[Scores]
    ) -> Explanation:
        """Divide a score among the terms if it is the sum of their scores."""
        total, *values = (float(scores[doc_id]) for scores in of_terms)
        total = total if score is None else score
        explanation = Explanation(
            id=id_, score=total, ranker=self._ranker, bm25=bm25, alpha=None, lexical=None
        )
        if not np.isclose(sum(values), total, rtol=1e-4, atol=1e-6):
            return replace(explanation, undivided=Undivided(value=total))
        terms = self._snapshot.vocabulary.terms
        addends = self._query_weights.addends(np.array([doc_id]))[0]
        entries = [
            TermShare(term=terms[number], value=value, weight=weight, bm25=addend)
            for number, value, addend, weight in zip(
                self._query.numbers.tolist(),
                values,
                addends.tolist(),
                self._query_weights.weights.tolist(),
                strict=True,
            )
        ]
        entries.sort(key=lambda one: (-one.value, one.term))
        return replace(explanation, lexical=Lexical(value=total, terms=tuple(entries)))

    def _terms(self, addends: Values, share: float) -> tuple[TermShare, ...]:
        """Return what each term adds, strongest first; 0 for query terms not in the document."""
        terms, query_terms = self._snapshot.vocabulary.terms, set(self._query.numbers.tolist())
        entries = [
            TermShare(
                term=terms[number],
                value=share * addend,
                weight=weight,
                bm25=addend,
                added=number not in query_terms,
            )
            for number, addend, weight in zip(
                self._query_weights.numbers.tolist(),
                addends.tolist(),
                self._query_weights.weights.tolist(),
                strict=True,
            )
            if addend or number in query_terms
        ]  # fmt: skip
        return tuple(sorted(entries, key=lambda one: (-one.bm25, one.term)))

    def _coverage(self, covered: Covered) -> Coverage:
        """Return the coverage of each term, largest first."""
        terms, entries = self._snapshot.vocabulary.terms, []
        ids = [*self._documents.ids(covered.lenders.tolist()), *covered.ids_elsewhere]
        for at, number in enumerate(covered.terms.tolist()):
            lent, near = covered.neighbour_addends[:, at], float(covered.near[at])
            first = [
                i for i in np.argsort(-lent, kind="stable")[:MAX_SEEDS].tolist() if lent[i] > 0
            ]
            entries.append(
                CoveredTerm(
                    term=terms[number],
                    value=float(covered.value[at]),
                    own=float(covered.own[at]),
                    near=near,
                    lenders=tuple(Lender(id=ids[i], share=float(lent[i]) / near) for i in first),
                )
            )
        entries.sort(key=lambda one: (-one.value, one.term))
        return Coverage(value=float(covered.value.sum()), terms=tuple(entries))

    def _expanded(self, doc_id: int, parts: ScoreParts) -> Expanded:
        """Return the strongest seeds; none if their sum is clipped to 0."""
        strengths = np.abs(parts.by_seed) * (parts.expansion != 0)
        first = [i for i in np.argsort(-strengths, kind="stable")[:MAX_SEEDS] if strengths[i] > 0]
        seeds = [int(parts.seeds[i]) for i in first]
        if parts.seed_details is None:
            names = [(each.id, each.title) for each in self._documents.records(seeds)]
            features = [self._features.of(seed) for seed in seeds]
        else:
            names = [parts.seed_details.names[seed] for seed in seeds]
            features = [_features_at(parts.seed_details.features, seed) for seed in seeds]
        shared = self._features.shared(doc_id, features)
        entries = tuple(
            Seed(
                id=id_,
                title=title,
                weight=float(parts.weights[i]),
                value=float(parts.by_seed[i]),
                shared=terms,
            )
            for i, (id_, title), terms in zip(first, names, shared, strict=True)
        )
        others = parts.expansion - sum(seed.value for seed in entries)
        return Expanded(value=parts.expansion, seeds=entries, others=others)

    def _explain_lsi(self, id_: str, doc_id: int, score: float | None) -> Explanation:
        values = lsi_terms(self._snapshot, self._query, self._ranker, self._dimensions, doc_id)
        terms = self._snapshot.vocabulary.terms
        entries = [
            LatentTerm(term=terms[number], value=value)
            for number, value in zip(self._query.numbers.tolist(), values.tolist(), strict=True)
        ]
        entries.sort(key=lambda one: (-one.value, one.term))
        total = float(values.sum()) if score is None else score
        return Explanation(
            id=id_,
            score=total,
            ranker=self._ranker,
            bm25=float(self._query_weights.addends(np.array([doc_id])).sum()),
            alpha=None,
            lexical=None,
            latent=Latent(value=total, terms=tuple(entries)),
        )


def _features_at(features: DocFeatures, place: int) -> FeatureValues:
    """Return the features of one of some documents."""
    entries = features.entries[features.starts[place] : features.starts[place + 1]]
    step = features.document_scalars[place, 0]
    values = step * (entries & np.uint32(LEVELS)).astype(np.float64)
    return (entries >> np.uint32(8)).astype(np.int64), values
