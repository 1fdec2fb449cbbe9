"""Snippets of stored documents, compiled: the same as those of `snippet`.

The forward index says which words of a text are terms of the query; their offsets are found by
counting words. No text is analysed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.characters import Characters, all_characters, ascii_characters
from klsa_search.analysis.offsets import Offsets, locate_words
from klsa_search.core.array_types import DocIds
from klsa_search.core.compiling import compiled, not_compiled
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.markup import without_markup
from klsa_search.search.snippets import FOREIGN, LENGTH, best_window, cut_out, encode, fold, snippet
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.forward_index import GAPS, Forward, find_words, table_of
from klsa_search.storage.records import text_at

_BATCH: Final = 100
"""Passages of one call of the compiled code, at most."""

_PASSAGE_END: Final = 0
"""No text contains it."""


class StoredSnippets:
    """Selects passages of the documents of one index; thread-safe.

    A call takes 4 bytes of memory per byte of the longest text, 12 if NFKC changes any of it.
    """

    def __init__(
        self,
        documents: DocumentReader,
        forward: Forward,
        analyzer: Analyzer,
        vocabulary: Vocabulary,
    ) -> None:
        self._documents, self._forward = documents, forward
        self._analyzer, self._numbers = analyzer, vocabulary.numbers
        self._characters = ascii_characters()

    def of(
        self,
        doc_ids: DocIds,
        terms: Collection[str],
        *,
        weights: Mapping[str, float] | None = None,
        length: int = LENGTH,
    ) -> list[str]:
        """Return a passage of each document, equal to that of `snippet`.

        terms  of the query, as the analyser returns them
        Cost: 1 µs and 5 ns a character for each; that of `snippet` with a custom tokenizer, and for
        texts in which `locate_words` cannot locate the words.
        """
        if not self._forward.fields.weights[-1]:  # the text is not searched
            terms = ()
        if self._analyzer.tokenizes:
            return self._by_snippet(doc_ids, terms, weights, length)
        result: list[str] = []
        for first in range(0, len(doc_ids), _BATCH):
            batch = np.asarray(doc_ids[first : first + _BATCH], np.int64)
            result += self._of(batch, terms, weights, length)
        return result

    def _of(
        self,
        doc_ids: npt.NDArray[np.int64],
        terms: Collection[str],
        weights: Mapping[str, float] | None,
        length: int,
    ) -> list[str]:
        known = [term for term in terms if term in self._numbers]
        codes = self._forward.ranks[[self._numbers[term] for term in known]] + np.int64(GAPS)
        weights_ = (
            np.array([weights.get(term, 1.0) for term in known], np.float64)
            if weights
            else np.ones(len(known))
        )
        passages = np.empty(len(doc_ids) * (4 * length + 8), np.uint8)
        skipped = np.empty(len(doc_ids), np.int32)
        while True:
            arguments = (
                self._documents.content, self._documents.starts,
                self._forward.codes, self._forward.starts, len(self._forward.fields.names),
                doc_ids, codes, weights_, length, self._characters, passages, skipped,
            )  # fmt: skip
            if not_compiled(_find_passages):
                return self._by_snippet(doc_ids, terms, weights, length)
            end, skipped_count = _find_passages(*arguments)
            if end != FOREIGN:
                break
            self._characters = all_characters()
        try:
            result = _shown(passages, end)
        except UnicodeDecodeError as error:
            raise self._documents.damaged(error) from error
        for place in skipped[:skipped_count].tolist():
            text = self._documents.text(int(doc_ids[place]))
            result[place] = snippet(text, terms, self._analyzer, weights=weights, length=length)
        return result

    def _by_snippet(
        self,
        doc_ids: DocIds,
        terms: Collection[str],
        weights: Mapping[str, float] | None,
        length: int,
    ) -> list[str]:
        texts = map(self._documents.text, doc_ids.tolist())
        return [
            snippet(text, terms, self._analyzer, weights=weights, length=length) for text in texts
        ]


def _shown(content: npt.NDArray[np.uint8], end: int) -> list[str]:
    """Return the passages of a text in UTF-8, without Markdown."""
    return list(map(without_markup, str(content[:end].data, "utf-8").split("\0")[:-1]))


@compiled
def _find_passages(
    content: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    forward: npt.NDArray[np.uint8],
    codes_begin: npt.NDArray[np.int64],
    parts: int,
    doc_ids: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    length: int,
    characters: Characters,
    passages: npt.NDArray[np.uint8],
    skipped: Offsets,
) -> tuple[int, int]:
    """Write a passage of each text; FOREIGN if character classes are missing.

    codes, weights  of the terms of the query
    skipped         documents whose words cannot be located; their passages are empty
    Returns the end of the passages, and the number of skipped documents.
    """
    table, numbers = table_of(codes)
    counts = np.empty(len(codes), np.int32)
    written, skipped_count = 0, 0
    passage = np.empty(length + 2, np.uint32)
    for i in range(len(doc_ids)):
        begin, end = text_at(content, begins, doc_ids[i])
        line = np.empty(end - begin + 1, np.uint32)
        size = fold(content, begin, end, characters.classes, line)
        if size == FOREIGN:
            return FOREIGN, 0
        if size <= length:
            written = encode(line, size, passages, written)
        else:
            first_code = max(codes_begin[doc_ids[i]], 0)
            after_code = min(codes_begin[doc_ids[i] + 1], len(forward))
            places = np.empty(max(after_code - first_code, 0), np.int32)
            which = np.empty_like(places)
            result = find_words(
                forward, first_code, after_code, parts, table, numbers, places, which
            )
            starts, ends = np.empty(result, np.int32), np.empty(result, np.int32)
            result = locate_words(line, size, characters, places[:result], starts, ends)
            if result < 0:
                skipped[skipped_count] = i
                skipped_count += 1
            else:
                first, after = best_window(result, which, starts, ends, weights, counts, length)
                cut = cut_out(line, size, first, after, length, passage)
                written = encode(passage, cut, passages, written)
        passages[written] = _PASSAGE_END
        written += 1
    return written, skipped_count
