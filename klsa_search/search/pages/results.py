"""Results of a search: hits, highlights, and how the query was interpreted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klsa_search._native import marked_html
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.lazy import LazyFields
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.explain.quality import FITS
from klsa_search.search.pages.facets import Facet
from klsa_search.search.query.interpretation import QueryInterpretation


@dataclass(frozen=True, kw_only=True)
class Highlight:
    """A text with the words of the query in it.

    marks  (start, end) of each word, in code points of `text`
    html   the text, escaped for HTML, with each word in <mark>

    >>> found: klsa.Highlight = index.search("wet roads", highlight=True)[0].highlight["snippet"]
    >>> found.html
    'Bald tyres slip on <mark>wet</mark> <mark>roads</mark>.'
    """

    text: str
    marks: tuple[tuple[int, int], ...]
    html: str


def highlighted(text: str, terms: Collection[str], analyzer: Analyzer) -> Highlight:
    """Mark the words of a text that are terms of the query, whatever their form.

    terms  as `analyzer` makes them
    Cost: the analysis of the text.
    """
    marks: list[tuple[int, int]] = []
    for _, start, end in analyzer.occurrences(text, terms):
        if marks and start < marks[-1][1]:  # words of a tokenizer may overlap
            start, end = marks[-1][0], max(end, marks.pop()[1])
        marks.append((start, end))
    return Highlight(text=text, marks=tuple(marks), html=marked_html(text, marks))


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankScore:
    """The score of a hit by a reranker, by which the first hits are ordered, and its rank before.

    >>> def longest(query, texts):
    ...     return [len(text) for text in texts]
    >>> index = klsa.open_index("index/reports", reranker=longest)
    >>> hit = index.search("leaking coolant", rerank=10)[0]
    >>> hit.rank, hit.id, hit.rerank
    (1, 'heat', RerankScore(score=78.0, rank=2))
    """

    score: float
    rank: int


@dataclass(slots=True)
class Hit(LazyFields):
    """One ranked document; `rank` counts from 1. `metadata` are decoded when they are first read.

    What was not requested is None. If documents are divided into passages, the snippet is of the
    best one. With `group="passage"` a hit is a passage, and `id` names its document and span.

    explanation    explanation of the score
    highlight      highlights of title, snippet and other searched fields
    quality        how good a match it is, from 0 to 1
    document_id    ID of its document, if documents are divided into passages
    span           characters of the best passage, or of this one, in the document
    page           page of the passage, from 1; None if the document has no page breaks
    heading        path of the headings of the passage
    text           text of the passage
    more_passages  number of other passages of the document that match
    rerank         score by a reranker, and rank before, if it scored the hit

    >>> index.search("roads", k=1)[0]
    Hit(rank=1, id='tyre', score=..., title='Tyres', snippet='Bald tyres slip on wet roads.', ...)
    """

    rank: int
    id: str
    score: float
    title: str
    snippet: str
    metadata: Mapping[str, Any]
    explanation: Explanation | None = None
    highlight: Mapping[str, Highlight] | None = None
    quality: float | None = None
    document_id: str | None = None
    span: tuple[int, int] | None = None
    page: int | None = None
    heading: str | None = None
    text: str | None = None
    more_passages: int | None = None
    rerank: RerankScore | None = None


@dataclass(slots=True, kw_only=True)
class SearchResults:
    """The hits of one query, with the parameters of their ranking.

    interpretation  how the query was read
    hits        the best documents, or those from `offset` on
    total       number of matching documents, with a score above 0, on all pages; with `distinct`,
                of its values
    parameters  those that the ranker used
    offset      number of skipped hits
    facets      those that were requested, by name
    quality     quality of the best match among the hits, if it was requested
    search_id   random ID of the search for events, if a service recorded it in its analytics
    tokens      size of all texts, with `max_tokens`
    truncated   whether passages that were found did not fit, with `max_tokens`; if nothing fits
                there are no hits
    rules       IDs of the rules of the index that applied
    warnings    what failed and is missing, such as a reranker

    >>> results: klsa.SearchResults = index.search("leaking coolant", k=2)
    >>> results.total, len(results), results.ranker
    (3, 2, 'klsa')
    >>> hit = results[0]
    >>> hit.rank, hit.id, hit.title
    (1, 'leak', 'Leaks')
    """

    query: str
    interpretation: QueryInterpretation
    hits: tuple[Hit, ...]
    total: int
    ranker: str
    parameters: Mapping[str, Any]
    offset: int = 0
    facets: Mapping[str, Facet] = field(default_factory=dict)
    quality: float | None = None
    search_id: str | None = None
    tokens: int | None = None
    truncated: bool | None = None
    rules: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def good_match(self) -> bool | None:
        """Return whether any hit is a good match; None if no quality was requested.

        >>> index.search("leaking coolant", quality=True).good_match
        True
        >>> index.search("leaking submarines of the admiralty", quality=True).good_match
        False
        """
        return None if self.quality is None else self.quality >= FITS

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self.hits)

    def __getitem__(self, position: int) -> Hit:
        """Return the hit at an index, from 0."""
        return self.hits[position]
