"""Written forms of terms: from stems back to words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import searched_texts
from klsa_search.core.field_weights import SearchedFields
from klsa_search.search.engine.snapshot import Snapshot

_SOURCES: Final = 5
"""Documents that are read for each term."""

_CHARACTERS: Final = 10_000
"""Characters of each that are read."""


class Source(NamedTuple):
    """How a document writes a term.

    saturation  of the term in the document, by which sources are chosen
    ordinal     of the document, which orders equal ones
    forms       written forms with their counts
    """

    saturation: int
    ordinal: int
    forms: Counter[str]


def written_forms(sources: Iterable[Source]) -> Counter[str]:
    """Return the written forms of a term with their counts; empty if none is found.

    Counts are of the five documents in which the term has the highest weight.
    """
    best = sorted(sources, key=lambda source: (-source.saturation, source.ordinal))[:_SOURCES]
    return sum((source.forms for source in best), Counter())


def sources_of(
    snapshot: Snapshot,
    analyzer: Analyzer,
    documents_at: Callable[[Iterable[int]], list[Document]],
    terms: Sequence[int],
) -> list[tuple[Source, ...]]:
    """Return how each term is written in the five documents in which it has the highest weight.

    documents_at  returns documents by doc id
    Only their beginnings count, each read and analysed once.
    """
    vocabulary = snapshot.vocabulary.terms
    fields = snapshot.forward.fields
    names = {vocabulary[term] for term in terms}
    sources = {term: _heaviest(snapshot, term) for term in terms}
    doc_ids = sorted({doc_id for sources_ in sources.values() for doc_id, _ in sources_})
    ordinals = snapshot.ordinals_of(np.array(doc_ids, np.int64)).tolist()
    ordinal_of = dict(zip(doc_ids, ordinals, strict=True))
    forms = {
        doc_id: _written(analyzer, _beginnings(document, fields), names)
        for doc_id, document in zip(doc_ids, documents_at(doc_ids), strict=True)
    }
    return [
        tuple(
            Source(saturation, ordinal_of[doc_id], forms[doc_id].get(vocabulary[term], Counter()))
            for doc_id, saturation in sources[term]
        )
        for term in terms
    ]


def _beginnings(document: Document, fields: SearchedFields) -> str:
    beginning = replace(document, text=document.text[:_CHARACTERS])
    return "\n".join(text[:_CHARACTERS] for text in searched_texts(beginning, fields))


def commonest(writings: Counter[str]) -> str:
    """Return the most frequent writing of the most frequent form, ignoring case."""
    folded: Counter[str] = Counter()
    for writing, count in writings.items():
        folded[writing.casefold()] += count
    # Of equals the shortest, then the first in alphabetical order.
    word = min(folded, key=lambda form: (-folded[form], len(form), form))
    return written_as(writings, word)


def written_as(writings: Counter[str], word: str) -> str:
    """Return the most frequent writing of a case-folded form."""
    same = [writing for writing in writings if writing.casefold() == word]
    # Of equals lower case, which sorts last: capitals may be due to the start of a sentence.
    return max(same, key=lambda writing: (writings[writing], writing))


def _heaviest(snapshot: Snapshot, term: int) -> list[tuple[int, int]]:
    """Return the documents in which a term has the highest weight, with its saturations."""
    documents, saturations = snapshot.query_kernel.postings.of_term(term)
    is_live = snapshot.live_docs()[documents]
    documents, saturations = documents[is_live], saturations[is_live]
    if len(saturations) > _SOURCES:
        least = np.partition(saturations, -_SOURCES)[-_SOURCES]
        documents, saturations = documents[saturations >= least], saturations[saturations >= least]
    heaviest = np.argsort(-saturations.astype(np.int64), kind="stable")[:_SOURCES]
    return list(zip(documents[heaviest].tolist(), saturations[heaviest].tolist(), strict=True))


def _written(analyzer: Analyzer, text: str, terms: Set[str]) -> dict[str, Counter[str]]:
    """Return how often each term is written in which way."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for term, word in analyzer.written(text):
        if term in terms:
            forms[term][word] += 1
    return forms
