"""A test collection out of nothing but documents: their halves.

Each document is cut in the middle. The first halves ask and judge: to the title of a document, or
to its first words, are relevant the document itself and those whose first half is nearest to its
own. The second halves are what is searched. No text is on both sides, so that a word finds a
document because two texts on one subject use it, not because it was copied from there.

A plain known-item search, a title that is to find its own document, ranks settings as the
judgements do on none of cran, cacm and med: it has one right answer, and whatever looks beyond the
words of the query can only do harm to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from klsa_search.analysis import Analyzer
from klsa_search.collection import Document, Judgement, Query
from klsa_search.search.index import Index

QUERIES = 200
"""Documents that are asked for at most."""
NEAREST = 5
"""Number of relevant documents besides the one the query is from."""
SHORTEST = 20
"""Terms a text must have to be cut."""
FIRST_WORDS = 10
"""Terms of the query where there is no title."""


@dataclass(frozen=True)
class Halves:
    """The documents that could be cut, twice, and queries for some of them.

    first    title and first half of each
    second   second half of each, under the same ids, in the same order
    queries  one a sampled document, under its id
    """

    first: tuple[Document, ...]
    second: tuple[Document, ...]
    queries: tuple[Query, ...]


def halve(documents: Iterable[Document], analyzer: Analyzer, seed: int = 0) -> Halves:
    """Cut every document that is long enough, and sample the queries.

    Cost: one pass; the halves stay in memory. Same seed, same sample.
    """
    first, second, queries = [], [], []
    for document in documents:
        tokens = analyzer.tokens(document.text)
        if len(tokens) < SHORTEST:
            continue
        cut = tokens[len(tokens) // 2].start
        first.append(replace(document, text=document.text[:cut]))
        second.append(replace(document, title="", text=document.text[cut:]))
        words = document.title.strip() or document.text[: tokens[FIRST_WORDS].start]
        queries.append(Query(id=document.id, text=words))
    order = np.random.default_rng(seed).permutation(len(queries))
    sampled = np.sort(order[:QUERIES]).tolist()
    return Halves(tuple(first), tuple(second), tuple(queries[number] for number in sampled))


def judge_by_first_halves(halves: Halves, first: Index) -> list[Judgement]:
    """Call relevant to a query its document and the nearest others by BM25 of the first halves.

    `first` is an index of the first halves. Cost: one search a query, with a whole half as text.
    """
    texts = {document.id: f"{document.title} {document.text}" for document in halves.first}
    judgements = []
    for query in halves.queries:
        positions, _ = first.rank(texts[query.id], NEAREST + 1, ranker="bm25")
        others = (other for other in first.ids(positions) if other != query.id)
        judgements += [
            Judgement(query_id=query.id, document_id=relevant, grade=1, gain=1)
            for relevant in (query.id, *islice(others, NEAREST))
        ]
    return judgements
