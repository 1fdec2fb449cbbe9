"""Hits of ranked documents: titles, passages and optional parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.deadlines import in_time
from klsa_search.search.explaining import Explaining
from klsa_search.search.highlights import highlighted
from klsa_search.search.language import Asked, QueryInterpretation
from klsa_search.search.results import Hit
from klsa_search.search.snippet import LENGTH
from klsa_search.search.state import State
from klsa_search.store.fields.values import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Presenting:
    """Shows what was found for one query in one state of an index."""

    state: State
    asked: Asked
    interpretation: QueryInterpretation
    parameters: SearchSettings
    dimensions: int

    def hits(
        self, positions: Positions, scores: Scores, offset: int, length: int, *, weighed: bool
    ) -> tuple[Hit, ...]:
        """Hits with the passages of `length` characters that show the words of the query best.

        weighed  a word counts as much as it does in the ranking, not each the same
        """
        in_time()
        terms = self.state.language.shown(self.asked)
        weights = self._worth(terms) if weighed else None
        return hits_of(self.state, positions, scores, terms, weights, offset, length)

    def highlighted(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Hits that tell where the words of the query stand."""
        terms, analyzer = self.state.language.shown(self.asked), self.state.facts.analyzer

        def completed(hit: Hit) -> Hit:
            in_time()
            title, snippet = (
                highlighted(text, terms, analyzer) for text in (hit.title, hit.snippet)
            )
            return replace(hit, highlight={"title": title, "snippet": snippet})

        return tuple(map(completed, hits))

    def judged(
        self, hits: tuple[Hit, ...], positions: Positions
    ) -> tuple[tuple[Hit, ...], float | None]:
        """Hits that tell how good a match they are, and the best; None where nothing is asked."""
        stand_ins = self.asked.stand_ins
        asked = self.state.language.shown(self.asked) - stand_ins.added
        terms = asked.union(self.interpretation.unknown)
        if not terms:
            return hits, None
        qualities = self.state.quality.of(self.state.snapshot, terms, positions, stand_ins.of)
        rated = (replace(hit, quality=q) for hit, q in zip(hits, qualities, strict=True))
        return tuple(rated), max(qualities, default=0.0)

    def explained(self, hits: tuple[Hit, ...], positions: Positions) -> tuple[Hit, ...]:
        """Hits that tell how their scores came about."""
        if not hits:
            return hits
        explaining = self.explaining()
        explained = []
        for hit, position in zip(hits, positions.tolist(), strict=True):
            in_time()
            explained.append(replace(hit, explanation=explaining.of(position, hit.score)))
        return tuple(explained)

    def explaining(self) -> Explaining:
        """What explains the scores of the query."""
        numbers = list(self.asked.terms)
        return Explaining(
            self.state.snapshot,
            self.state.documents,
            numbers,
            self.parameters,
            self.dimensions,
            engine=self.state.ranking.by_engine(numbers, self.parameters),
        )

    def _worth(self, terms: Collection[str]) -> dict[str, float]:
        """What known terms count for in the ranking."""
        snapshot = self.state.snapshot
        numbers, worth = snapshot.vocabulary.numbers, snapshot.bm25.worth
        return {term: float(worth[numbers[term]]) for term in terms if term in numbers}


def hits_of(
    state: State,
    positions: Positions,
    scores: Scores,
    terms: Collection[str],
    weights: Mapping[str, float] | None,
    offset: int = 0,
    length: int = LENGTH,
) -> tuple[Hit, ...]:
    """Hits of ranked documents, in their order. See `Index.hits`."""
    records = state.documents.records(positions.tolist())
    passages = state.passages.of(positions, terms, weights=weights, length=length)
    numbers = [name for name, field in state.fields.items() if field.type == "number"]
    return tuple(
        Hit(
            rank=rank,
            id=record.id,
            score=score,
            title=record.title,
            snippet=passage,
            metadata=_with_numbers(record.metadata, numbers),
        )
        for rank, (record, passage, score) in enumerate(
            zip(records, passages, scores.tolist(), strict=True), start=offset + 1
        )
    )


def _with_numbers(metadata: Mapping[str, Any], fields: Sequence[str]) -> Mapping[str, Any]:
    """Return metadata with numbers where a number field has texts that stand for them."""
    found = {name: as_number(metadata[name]) for name in fields if name in metadata}
    return {**metadata, **found} if found else metadata
