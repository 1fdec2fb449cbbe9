"""What an explanation says: the parts of a score, and what each is made of.

All values are in units of the score, so that whatever stands beside each other adds up to what it
is a part of: `lexical`, `coverage`, `latent` and `expansion` to the score, terms and seeds to
those.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TermShare:
    """What one term of the query adds by standing in the document.

    term    as it is indexed
    value   of the score
    weight  what the query makes of it: its idf, times how often it was asked for
    bm25    its addend in BM25
    added   whether feedback put it into the query
    """

    term: str
    value: float
    weight: float
    bm25: float
    added: bool = False


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """What the document gets for holding the words of the query: BM25, or what is made of it."""

    value: float
    terms: tuple[TermShare, ...]


@dataclass(frozen=True, kw_only=True)
class Lender:
    """A near document that holds a term; `share` is its share of all that near ones lend of it."""

    id: str
    share: float


@dataclass(frozen=True, kw_only=True)
class CoveredTerm:
    """How far one term of the query is covered.

    value    of the score
    own      what the document itself holds of it, in BM25
    near     what the documents near it lend, likewise
    lenders  those that lend most of it
    """

    term: str
    value: float
    own: float
    near: float
    lenders: tuple[Lender, ...]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What the document gets for what it and those near it hold of the query together."""

    value: float
    terms: tuple[CoveredTerm, ...]


@dataclass(frozen=True, kw_only=True)
class LatentTerm:
    """What one term of the query adds in the latent space."""

    term: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Latent:
    """What the document gets for lying near the query in the latent space.

    `terms` are told by the rankers lsi and lsi-cosine, whose score it is.
    """

    value: float
    terms: tuple[LatentTerm, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SharedTerm:
    """A term, or a pair of terms side by side in any order, that two documents share.

    share  of what they have in common by all they share
    """

    term: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A document that BM25 found, and that brought this one.

    weight  how much it counts as a seed; 1 for the strongest
    value   of the score; below 0 where it is less like this document than documents are on average
    shared  what relates the two most
    """

    id: str
    title: str
    weight: float
    value: float
    shared: tuple[SharedTerm, ...]


@dataclass(frozen=True, kw_only=True)
class Expanded:
    """What the document gets for being like those that BM25 found: its seeds.

    seeds   those that matter most
    others  what all others add, and rounding
    """

    value: float
    seeds: tuple[Seed, ...]
    others: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How the score of a document came about.

    bm25       what BM25 gives it, of which `lexical` is made
    alpha      share of coverage, latent and expansion in the scores of this query; None for a
               ranker that has none
    estimated  parts that were estimated from what is at hand, as the document is far from the first
    feedback   ids of the documents that the added terms are from

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
    expansion: Expanded | None = None
    estimated: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
