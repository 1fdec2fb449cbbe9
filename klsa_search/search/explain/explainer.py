"""Explain how the score of a document was computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import repeat
from typing import Final

import numpy as np

from klsa_search.core.array_types import DocIds, Numbers, Scores, values_at
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.parameters import RankingSettings
from klsa_search.search.engine.engine import DocFeatures, SeedRows
from klsa_search.search.engine.query_terms import QueryTerms, distinct_known
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.explain.explanation import (
    Coverage,
    CoveredTerm,
    ExpansionPart,
    Explanation,
    Latent,
    LatentTerm,
    Lexical,
    Neighbour,
    Seed,
    SharedTerm,
    TermShare,
    UndividedScore,
)
from klsa_search.search.explain.score_parts import (
    NOT_NAMED,
    ScoreParts,
    TermCoverage,
    Values,
    addends_of,
    engine_parts,
    query_weights,
    ranker_parts,
)
from klsa_search.search.rankers import ranker_of
from klsa_search.search.rankers.feedback import expand_query
from klsa_search.search.ranking.searcher import Searcher
from klsa_search.storage.documents import DocumentReader

MAX_SHARED: Final = 5
"""Common features of two documents that are reported, at most."""

MAX_SEEDS: Final = 5
"""Seeds that are reported, and neighbours per term, at most."""

MAX_TERMS: Final = 64
"""Query words up to which the score of a ranker is divided into their scores."""


class Explainer:
    """Explains scores of one query in one state of an index."""

    def __init__(
        self,
        searcher: Searcher,
        documents: DocumentReader,
        terms: Sequence[int],
        parameters: RankingSettings,
    ) -> None:
        self._searcher, self._documents = searcher, documents
        self._snapshot = snapshot = searcher.snapshot
        self._parameters = parameters
        self._ranker = ranker_of(parameters.ranker)
        self._terms, self._query = terms, QueryTerms.of(terms)
        self._feedback_documents: DocIds = np.zeros(0, np.int64)
        query, feedback = self._query, self._ranker.feedback
        if feedback is not None:
            query, self._feedback_documents = expand_query(
                snapshot, query, parameters, feedback, searcher.evidence
            )
        self._scored = query
        self._weights = query_weights(snapshot, query).tolist()
        self._shared = searcher.explained_seeds
        self._record = cache(lambda doc_id: documents.records([doc_id])[0])
        sparse = snapshot.sparse_expansion
        self._features = cache(lambda doc_id: DocFeatures.of(sparse, np.array([doc_id])).at(0))
        terms_by_number = snapshot.vocabulary.terms
        self._name = cache(lambda n: snapshot.feature_numbers.name(n, terms_by_number))

    def explanations(self, top: TopDocs) -> Iterator[Explanation]:
        """Yield explanations of the scores of documents; NaN stands for an exact score.

        Cost: a search; for each document its features and those of the seeds, some 10 µs, and the
        names of its strongest seeds, terms and neighbours, some 200 µs.
        """
        ids, scores = self._documents.ids(top.doc_ids.tolist()), top.scores.tolist()
        addends = addends_of(self._snapshot, self._scored, top.doc_ids, self._parameters)
        scores_by = self._ranker.scores_by
        of_terms = self._rank_terms() if scores_by in ("index", "lsi") else []
        parts: Iterable[ScoreParts | None] = repeat(None)
        if scores_by == "kernel" and self._parameters.alpha > 0:
            parts = self._parts(top)
        for id_, doc_id, score, bm25, score_parts in zip(
            ids, top.doc_ids.tolist(), scores, addends, parts, strict=False
        ):
            check_deadline()
            blank = Explanation(
                id=id_, score=score, ranker=self._parameters.ranker, bm25=float(bm25.sum()),
                alpha=None, lexical=None,
            )  # fmt: skip
            if score == 0:  # it was found by its vector or by a rule, not by words
                yield self._explain_bm25(blank, bm25, share=0.0)
            elif scores_by == "lsi":
                yield self._explain_lsi(blank, doc_id, of_terms)
            elif scores_by == "index":
                yield self._explain_terms(blank, doc_id, bm25, of_terms)
            elif score_parts is None:
                yield self._explain_bm25(blank, bm25)
            else:
                yield self._explain_parts(blank, doc_id, bm25, score_parts)

    def _parts(self, top: TopDocs) -> Iterator[ScoreParts | None]:
        """Yield the parts of scores by the default ranking; None for a query without matches."""
        snapshot, parameters = self._snapshot, self._parameters
        if top.exact is None:
            evidence = self._searcher.evidence
            return ranker_parts(snapshot, self._query, parameters, evidence, top.doc_ids)
        details = self._searcher.explain(self._terms, top.doc_ids, top.exact, parameters)
        if not len(details.weights):
            return repeat(None)
        shared = self._shared
        rows = (
            snapshot.klsa_engine.rows(details.seeds) if shared is None else SeedRows(*shared.rows)
        )
        return engine_parts(
            details,
            distinct_known(self._terms),
            snapshot.query_kernel.postings.step,
            parameters,
            (rows, snapshot.ordinals_of(top.doc_ids)),
        )

    def _explain_bm25(self, blank: Explanation, addends: Values, share: float = 1.0) -> Explanation:
        value = share * blank.bm25
        return replace(
            blank,
            score=value if np.isnan(blank.score) else blank.score,
            alpha=0.0 if self._ranker.scores_by == "kernel" else None,
            lexical=Lexical(value=value, terms=self._term_shares(addends, share)),
            feedback=tuple(self._documents.ids(self._feedback_documents.tolist())),
        )

    def _explain_parts(
        self, blank: Explanation, doc_id: int, addends: Values, parts: ScoreParts
    ) -> Explanation:
        covered = 0.0 if parts.covered is None else float(parts.covered.value.sum())
        total = parts.lexical + covered + (parts.latent or 0.0) + parts.expansion
        if total < 0 and blank.score > 0:  # sums of unscaled parts below 0 count as 0
            parts = parts._replace(expansion=parts.expansion - total)
        share = parts.lexical / blank.bm25 if blank.bm25 else 0.0
        return replace(
            blank,
            score=total if np.isnan(blank.score) else blank.score,
            alpha=parts.alpha,
            lexical=Lexical(value=parts.lexical, terms=self._term_shares(addends, share)),
            coverage=None if parts.covered is None else self._coverage(parts.covered),
            latent=None if parts.latent is None else Latent(value=parts.latent),
            expansion=self._expanded(doc_id, parts),
            estimated=parts.estimated,
        )

    def _rank_terms(self) -> list[Scores]:
        """Return the scores of all documents for the query and, if these are few, for its terms."""
        rank, query, evidence = self._ranker.scores, self._query, self._searcher.evidence
        queries = [query]
        if len(query.numbers) <= MAX_TERMS:
            queries += [
                QueryTerms(query.numbers[at : at + 1], query.counts[at : at + 1])
                for at in range(len(query.numbers))
            ]
        return [rank(self._snapshot, one, self._parameters, evidence) for one in queries]

    def _explain_terms(
        self, blank: Explanation, doc_id: int, addends: Values, of_terms: list[Scores]
    ) -> Explanation:
        """Divide a score among the terms if it is the sum of their scores."""
        total, *values = (float(scores[doc_id]) for scores in of_terms)
        total = total if np.isnan(blank.score) else blank.score
        explanation = replace(blank, score=total)
        if not np.isclose(sum(values), total, rtol=1e-4, atol=1e-6):
            return replace(explanation, undivided=UndividedScore(value=total))
        terms = self._snapshot.vocabulary.terms
        entries = [
            TermShare(term=terms[number], value=value, weight=weight, bm25=addend)
            for number, value, addend, weight in zip(
                self._query.numbers.tolist(), values, addends.tolist(), self._weights, strict=True
            )
        ]
        entries.sort(key=lambda one: (-one.value, one.term))
        return replace(explanation, lexical=Lexical(value=total, terms=tuple(entries)))

    def _term_shares(self, addends: Values, share: float) -> tuple[TermShare, ...]:
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
                self._scored.numbers.tolist(), addends.tolist(), self._weights, strict=True
            )
            if addend or number in query_terms
        ]
        return tuple(sorted(entries, key=lambda one: (-one.bm25, one.term)))

    def _coverage(self, covered: TermCoverage) -> Coverage:
        terms, neighbours = self._snapshot.vocabulary.terms, covered.neighbours.tolist()
        entries = []
        for at, number in enumerate(covered.terms.tolist()):
            lent = covered.lent[:, at].tolist()
            near, first = float(sum(lent)), np.argsort(-covered.lent[:, at], kind="stable").tolist()
            entries.append(
                CoveredTerm(
                    term=terms[number],
                    value=float(covered.value[at]),
                    in_document=float(covered.of_document[at]),
                    near=near,
                    neighbours=tuple(
                        Neighbour(id=self._neighbour(neighbours[i]), share=lent[i] / near)
                        for i in first[:MAX_SEEDS]
                        if lent[i] > 0 and neighbours[i] != NOT_NAMED
                    ),
                )
            )
        entries.sort(key=lambda one: (-one.value, one.term))
        return Coverage(value=float(covered.value.sum()), terms=tuple(entries))

    def _neighbour(self, doc_id: int) -> str:
        """Return the ID of a document, also of another partition: see `ScoreDetails`."""
        if doc_id < 0 and self._shared is not None:
            return self._shared.remote_names[-2 - doc_id][0]
        return self._record(doc_id).id

    def _seed(self, parts: ScoreParts, position: int) -> tuple[str, str, tuple[Numbers, Values]]:
        if self._shared is not None:
            return *self._shared.names[position], DocFeatures(*self._shared.features).at(position)
        doc_id = int(parts.seeds[position])
        record = self._record(doc_id)
        return record.id, record.title, self._features(doc_id)

    def _expanded(self, doc_id: int, parts: ScoreParts) -> ExpansionPart:
        """Return the strongest seeds; none if their sum is clipped to 0."""
        strengths = np.abs(parts.by_seed) * (parts.expansion != 0)
        first = np.argsort(-strengths, kind="stable")[:MAX_SEEDS].tolist()
        first = [position for position in first if strengths[position] > 0]
        seeds = [self._seed(parts, position) for position in first]
        entries = tuple(
            Seed(
                id=id_,
                title=title,
                weight=float(parts.weights[position]),
                value=float(parts.by_seed[position]),
                shared=self._shared_terms(doc_id, features),
            )
            for position, (id_, title, features) in zip(first, seeds, strict=True)
        )
        remainder = parts.expansion - sum(seed.value for seed in entries)
        return ExpansionPart(value=parts.expansion, seeds=entries, remainder=remainder)

    def _shared_terms(
        self, document: int, features: tuple[Numbers, Values]
    ) -> tuple[SharedTerm, ...]:
        """Return the features that a document shares with others, strongest first.

        Cost: their features, and 25 ns for each pair of terms that is a feature, once per index.
        """
        numbers, values = self._features(document)
        terms, weights = features
        order = np.argsort(numbers)
        products = weights * values_at(terms, numbers[order], values[order])
        total = float(products.sum())
        strongest = np.lexsort((terms, -products))[:MAX_SHARED].tolist()
        return tuple(
            SharedTerm(term=self._name(int(terms[i])), share=float(products[i]) / total)
            for i in strongest
            if products[i] > 0
        )

    def _explain_lsi(self, blank: Explanation, doc_id: int, of_terms: list[Scores]) -> Explanation:
        total, *values = (float(scores[doc_id]) for scores in of_terms)
        total = total if np.isnan(blank.score) else blank.score
        terms = self._snapshot.vocabulary.terms
        entries = [  # none if the query has too many words: see `_rank_terms`
            LatentTerm(term=terms[number], value=value)
            for number, value in zip(self._query.numbers.tolist(), values, strict=False)
        ]
        entries.sort(key=lambda one: (-one.value, one.term))
        return replace(blank, score=total, latent=Latent(value=total, terms=tuple(entries)))
