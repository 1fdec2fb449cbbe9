"""Results of a search: hits, highlights, and how the query was interpreted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klsa_search._native import marked_html
from klsa_search.analysis.analyzer import Analyzer
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
class Hit:
    """One ranked document; `rank` counts from 1.

    `explanation`, `highlight` (of title, snippet and other searched fields) and `quality` (how good
    a match it is, from 0 to 1) are set if they were requested.

    If documents are divided into passages, `span` (of characters in the text), `page` (from 1; None
    if the text has no page breaks) and `heading` are those of the best passage, from which the
    snippet is, and `more_passages` counts the others that match. With `group="passage"` a hit is a
    passage: `id` names document and span, `document_id` the document, and `text` is its text.

    `rerank` is set if a reranker scored the hit; `score` is still that of the ranking.

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

    `total` counts all matching documents, those with a score above 0, on all pages;
    `hits` are the best of them, or those from `offset` on. `parameters` are those that the ranker
    used, `facets` those requested, by name, `interpretation` is how the query was read, `quality`
    that of the best match among the hits, if it was requested. `search_id` is set by a service that
    records analytics. `rules` are the IDs of the rules of the index that applied.

    With `max_tokens`, `tokens` is the size of all texts, and `truncated` whether passages that were
    found did not fit; if nothing fits there are no hits, and `truncated` is true.

    `warnings` name what failed and is missing, such as a reranker.

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
