"""Snippets of stored documents: the same as those of `snippet`, and one native call for a page.

The forward index says which words of a text are terms of the query; their offsets are found by
counting words. No text is analysed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import all_characters, ascii_characters
from klsa_search.core.search_options import SNIPPET
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.snippets.markup import without_markup
from klsa_search.search.snippets.snippet import snippet
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.forward_index import Forward


class StoredSnippets:
    """Selects passages of the documents of one index; thread-safe.

    A call takes a byte of memory per byte of the longest text, 5 if it is not ASCII, and 13 if NFKC
    changes any of it.
    """

    def __init__(
        self,
        documents: DocumentReader,
        forward: Forward,
        analyzer: Analyzer,
        vocabulary: Vocabulary,
    ) -> None:
        self._documents, self._analyzer, self._vocabulary = documents, analyzer, vocabulary
        self._is_searched = bool(forward.fields.weights[-1])
        self._characters = ascii_characters()
        self._passages = _native.PassageFinder(
            documents.native, forward.codes, forward.ranks, len(forward.fields.names)
        )

    def numbered(
        self, terms: Collection[str], weights: Mapping[str, float] | None = None
    ) -> tuple[list[int], list[float]]:
        """Return the numbers and weights of those terms that the index has, as `of` takes them.

        terms, weights  as `snippet` takes them
        """
        numbers, weights = self._vocabulary.numbers, weights or {}
        present = [term for term in terms if term in numbers]
        return [numbers[term] for term in present], [weights.get(term, 1.0) for term in present]

    def of(
        self,
        doc_ids: Sequence[int],
        terms: Sequence[int],
        weights: Sequence[float] = (),
        length: int = SNIPPET,
    ) -> list[str]:
        """Return a passage of each document, equal to that of `snippet`.

        terms    numbers of the distinct terms of the query
        weights  of these; 1 by default
        Cost: 1 µs and 1 ns a character for each, 5 ns if it is not ASCII; that of `snippet` with a
        custom tokenizer, and for texts in which `locate_words` cannot locate the words.
        """
        if not self._is_searched:
            terms = weights = ()
        if self._analyzer.tokenizes:
            passages, missing = [""] * len(doc_ids), list(range(len(doc_ids)))
        else:
            passages, missing = self._located(doc_ids, terms, weights, length)
        if missing:
            names = [self._vocabulary.terms[term] for term in terms]
            weights_of = dict(zip(names, weights, strict=False))
        for number in missing:
            text = self._documents.text(doc_ids[number])
            passages[number] = snippet(
                text, names, self._analyzer, weights=weights_of, length=length
            )
        return passages

    def _located(
        self,
        doc_ids: Sequence[int],
        terms: Sequence[int],
        weights: Sequence[float],
        length: int,
    ) -> tuple[list[str], list[int]]:
        """Return the passages, and the places of those that are not located."""
        try:
            located = self._passages.passages(doc_ids, terms, weights, length, self._characters)
            if located is None:  # the tables end at ASCII, and a text does not
                self._characters = all_characters()
                located = self._passages.passages(doc_ids, terms, weights, length, self._characters)
        except ValueError as error:
            raise self._documents.damaged(error) from error
        assert located is not None
        passages, marked, missing = located
        for number in marked:
            passages[number] = without_markup(passages[number])
        return passages, missing
