"""Explain: a document and its score → how the score came about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from klsa_search.arrays import Positions
from klsa_search.config import SearchSettings
from klsa_search.search.boosting import lexical
from klsa_search.search.coverage import Covered, QueryWeights, Values
from klsa_search.search.explaining.cut import SplittingCut
from klsa_search.search.explaining.explanation import (
    Coverage,
    CoveredTerm,
    Expanded,
    Explanation,
    Latent,
    LatentTerm,
    Lender,
    Lexical,
    Seed,
    TermShare,
)
from klsa_search.search.explaining.pieces import Pieces, Splitting
from klsa_search.search.explaining.rows import SplittingRows
from klsa_search.search.explaining.shared import Features
from klsa_search.search.query import QueryTerms
from klsa_search.search.rankers.feedback import FEEDBACK, fed
from klsa_search.search.rankers.klsa import mix_of
from klsa_search.search.rankers.lsi import lsi_terms
from klsa_search.search.snapshot import Snapshot
from klsa_search.store.documents import DocumentReader

SEEDS: Final = 5
"""Maximum number of reported seeds, and of neighbours per term."""


class Explaining:
    """Explains the scores of one query in one state of an index.

    numbers  of the query's terms, in order, as `Ranking.terms` gives them
    engine   whether the engine of a cut D answered, or would
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
    ) -> None:
        self._snapshot, self._documents = snapshot, documents
        self._ranker, self._dimensions = parameters.ranker, dimensions
        self._query = QueryTerms.of(numbers)
        self._row = lexical(snapshot, self._query, parameters)
        self._asked = QueryWeights.boosted(snapshot, self._query, parameters)
        self._fed_by: Positions = np.zeros(0, np.int64)
        if parameters.ranker in FEEDBACK and self._row.any():
            feedback = FEEDBACK[parameters.ranker]
            enlarged, self._fed_by = fed(snapshot, self._query, parameters, feedback)
            self._asked = QueryWeights.boosted(snapshot, enlarged, parameters)
        self._features = Features(snapshot)
        self._splitting: Splitting | None = None
        if parameters.ranker == "klsa" and parameters.alpha > 0 and self._row.any():
            self._splitting = (
                SplittingCut(snapshot, list(numbers), mix_of(snapshot, parameters))
                if engine
                else SplittingRows(snapshot, self._query, self._row, parameters, dimensions)
            )

    def of(self, position: int, score: float | None) -> Explanation:
        """Explain the score of a document; without one, what it would be looked at in full.

        Cost: its own and its seeds' features, and a search in the postings of the query's terms.
        """
        (id_,) = self._documents.ids([position])
        if self._ranker in ("lsi", "lsi-cosine"):
            return self._by_lsi(id_, position, score)
        addends = self._asked.added(np.array([position]))[0]
        bm25 = float(addends.sum())
        if self._splitting is None:
            lexical = Lexical(value=bm25, terms=self._terms(addends, 1.0))
            return Explanation(
                id=id_,
                score=bm25 if score is None else score,
                ranker=self._ranker,
                bm25=bm25,
                alpha=0.0 if self._ranker == "klsa" else None,
                lexical=lexical,
                feedback=tuple(self._documents.ids(self._fed_by.tolist())),
            )
        pieces = self._splitting.pieces(position, score)
        covered = 0.0 if pieces.covered is None else float(pieces.covered.value.sum())
        whole = pieces.lexical + covered + (pieces.latent or 0.0) + pieces.expansion
        share = pieces.lexical / bm25 if bm25 else 0.0
        return Explanation(
            id=id_,
            score=whole if score is None else score,
            ranker=self._ranker,
            bm25=bm25,
            alpha=pieces.alpha,
            lexical=Lexical(value=pieces.lexical, terms=self._terms(addends, share)),
            coverage=None if pieces.covered is None else self._coverage(pieces.covered),
            latent=None if pieces.latent is None else Latent(value=pieces.latent),
            expansion=self._expanded(position, pieces),
            estimated=pieces.estimated,
        )

    def _terms(self, addends: Values, share: float) -> tuple[TermShare, ...]:
        """What each term adds, the strongest first; those that are asked for and not held at 0."""
        terms, asked = self._snapshot.vocabulary.terms, set(self._query.numbers.tolist())
        entries = [
            TermShare(
                term=terms[number],
                value=share * addend,
                weight=weight,
                bm25=addend,
                added=number not in asked,
            )
            for number, addend, weight in zip(
                self._asked.numbers.tolist(), addends.tolist(), self._asked.weights.tolist(),
                strict=True,
            )
            if addend or number in asked
        ]  # fmt: skip
        return tuple(sorted(entries, key=lambda one: (-one.bm25, one.term)))

    def _coverage(self, covered: Covered) -> Coverage:
        """What each term adds, the strongest first."""
        terms, entries = self._snapshot.vocabulary.terms, []
        ids = self._documents.ids(covered.lenders.tolist())
        for at, number in enumerate(covered.terms.tolist()):
            lent, near = covered.lent[:, at], float(covered.near[at])
            first = [i for i in np.argsort(-lent, kind="stable")[:SEEDS].tolist() if lent[i] > 0]
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

    def _expanded(self, position: int, pieces: Pieces) -> Expanded:
        """What the strongest seeds add; nothing where all of them together are cut at 0."""
        strengths = np.abs(pieces.by_seed) * (pieces.expansion != 0)
        first = [i for i in np.argsort(-strengths, kind="stable")[:SEEDS] if strengths[i] > 0]
        seeds = [int(pieces.seeds[i]) for i in first]
        shared = self._features.shared(position, seeds)
        entries = tuple(
            Seed(
                id=record.id,
                title=record.title,
                weight=float(pieces.weights[i]),
                value=float(pieces.by_seed[i]),
                shared=terms,
            )
            for i, record, terms in zip(first, self._documents.records(seeds), shared, strict=True)
        )
        others = pieces.expansion - sum(seed.value for seed in entries)
        return Expanded(value=pieces.expansion, seeds=entries, others=others)

    def _by_lsi(self, id_: str, position: int, score: float | None) -> Explanation:
        values = lsi_terms(self._snapshot, self._query, self._ranker, self._dimensions, position)
        terms = self._snapshot.vocabulary.terms
        entries = [
            LatentTerm(term=terms[number], value=value)
            for number, value in zip(self._query.numbers.tolist(), values.tolist(), strict=True)
        ]
        entries.sort(key=lambda one: (-one.value, one.term))
        whole = float(values.sum()) if score is None else score
        return Explanation(
            id=id_,
            score=whole,
            ranker=self._ranker,
            bm25=float(self._asked.added(np.array([position])).sum()),
            alpha=None,
            lexical=None,
            latent=Latent(value=whole, terms=tuple(entries)),
        )
