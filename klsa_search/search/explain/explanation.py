"""Explanations of scores: their parts, and what each part consists of.

All values are in units of the score. `lexical`, `coverage`, `latent`, `expansion`, `undivided`,
`passage`, `vector` and the values of `rules` add up to the score; terms and seeds add up to their
part. Scores are float32, and rounded relative to the best of the query, by some 10⁻⁷ of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TermShare:
    """Contribution of a query term that the document contains.

    term    term as it is indexed
    value   its contribution to the score
    weight  its weight in the query: idf times its count
    bm25    its contribution to BM25
    added   whether feedback added it to the query
    """

    term: str
    value: float
    weight: float
    bm25: float
    added: bool = False


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """Lexical part of a score: BM25 of the words of the query, or a function of it."""

    value: float
    terms: tuple[TermShare, ...]


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A neighbour that contains a term; `share` is its share of what all neighbours contribute."""

    id: str
    share: float


@dataclass(frozen=True, kw_only=True)
class CoveredTerm:
    """Coverage of one query term.

    value        its contribution to the score
    in_document  BM25 of the term in the document itself
    near         BM25 of the term contributed by neighbours
    neighbours   those that contribute most
    """

    term: str
    value: float
    in_document: float
    near: float
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Coverage part of a score: query words of the document and its neighbours together."""

    value: float
    terms: tuple[CoveredTerm, ...]


@dataclass(frozen=True, kw_only=True)
class LatentTerm:
    """Contribution of a query term in the latent space."""

    term: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Latent part of a score: similarity to the query in the latent space.

    `terms` are only set by the rankers lsi and lsi-cosine, for up to 64 query words.
    """

    value: float
    terms: tuple[LatentTerm, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SharedTerm:
    """A term, or an unordered pair of adjacent terms, that two documents share.

    share  its share of their similarity
    """

    term: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A seed document, found by BM25, that contributes to the score of this one.

    weight  weight of the seed; 1 for the strongest
    value   its contribution to the score; negative if less similar than documents are on average
    shared  terms that contribute most to the similarity
    """

    id: str
    title: str
    weight: float
    value: float
    shared: tuple[SharedTerm, ...]


@dataclass(frozen=True, kw_only=True)
class ExpansionPart:
    """Expansion part of a score: similarity to the seed documents, found by BM25.

    seeds      seeds that contribute most
    remainder  contribution of all other seeds, rounding, and what a score below 0 lacks, which
               counts as 0
    """

    value: float
    seeds: tuple[Seed, ...]
    remainder: float


@dataclass(frozen=True, kw_only=True)
class UndividedScore:
    """Score that is not the sum of what single query words score.

    It is that of a plug-in, or of a query of stop words alone.
    """

    value: float


@dataclass(frozen=True, kw_only=True)
class PassagePart:
    """Part of a score that the best passage of a long document adds.

    value        its contribution to the score: `weight` times the score of the passage
    explanation  of the score of the passage, among passages
    """

    value: float
    weight: float
    explanation: Explanation


@dataclass(frozen=True, kw_only=True)
class VectorPart:
    """Part of a score that the vector of the query adds: see `search.ranking.vector_ranking`.

    value       its contribution to the score
    cosine      of the vectors of document and query; None if the document has no vector
    deviations  by which the cosine exceeds the mean of all documents, in standard deviations
    """

    value: float
    space: str
    cosine: float | None
    deviations: float


@dataclass(frozen=True, kw_only=True)
class RuleEffect:
    """What a rule of the index did to a hit.

    rule      ID of the rule
    value     its contribution to the score: 0 for a pin, below 0 if it lowers the score
    position  position at which it pins the document
    factor    factor of the score
    """

    rule: str
    action: Literal["pin", "boost"]
    value: float
    position: int | None = None
    factor: float | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanation of the score of a document.

    bm25       its BM25 score, from which `lexical` is computed
    alpha      share of coverage, latent and expansion in the scores of this query; None if the
               ranker has none
    estimated  parts that are estimates, because the document is far from the first
    feedback   IDs of the documents that the added terms are from
    rules      what rules of the index did to the hit

    >>> found: klsa.Explanation = index.explain("leaking coolant", "heat")
    >>> [part for part in ("lexical", "coverage", "latent", "expansion") if getattr(found, part)]
    ['lexical', 'coverage', 'latent', 'expansion']
    >>> found.lexical.terms[0].term
    'coolant'
    """

    id: str
    score: float
    ranker: str
    bm25: float
    alpha: float | None
    lexical: Lexical | None
    coverage: Coverage | None = None
    latent: Latent | None = None
    expansion: ExpansionPart | None = None
    undivided: UndividedScore | None = None
    passage: PassagePart | None = None
    vector: VectorPart | None = None
    estimated: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    rules: tuple[RuleEffect, ...] = ()
