"""Snippets: the passage of a document that contains most of a query, as one line.

Passages of stored documents are found in one native call for a page, and no text is analysed: the
forward index says which words of a text are terms of the query, and their offsets are found by
counting words. `snippet` finds the same passage in any text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import all_characters, ascii_characters
from klsa_search.core.parameters import SNIPPET
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.forward_index import Forward


def snippet(
    text: str,
    terms: Collection[str],
    analyzer: Analyzer,
    *,
    weights: Mapping[str, float] | None = None,
    length: int = SNIPPET,
) -> str:
    """Return the passage of a text that contains most of the query, as one line without Markdown.

    terms    terms of the query, as `analyzer` returns them
    weights  of terms, such as idf; 1 by default
    length   characters of the passage, at most, without "…" at cut ends

    It has the largest sum of weights, in which repeated terms count a tenth; the first of equals.
    It consists of whole sentences if they fit, and is otherwise cut between words. Without a term
    of the query it is the beginning of the text. Cost: that of `Analyzer.occurrences`.
    """
    line = folded(text)
    if len(line) <= length:
        return without_markup(line)
    terms_ = sorted(set(terms))
    numbers = {term: number for number, term in enumerate(terms_)}
    matches = analyzer.occurrences(line, numbers) if terms_ else []
    passage = _native.best_passage(
        _points(line),
        np.array([numbers[term] for term, _, _ in matches], np.int32),
        np.array([start for _, start, _ in matches], np.int32),
        np.array([end for _, _, end in matches], np.int32),
        np.array([(weights or {}).get(term, 1.0) for term in terms_], np.float64),
        length,
    )
    return without_markup(_text(passage))


def folded(text: str) -> str:
    """Return a text with each run of blank space as one character, without those at its ends.

    It is a line feed if it contains one, a form feed if it contains several or a form feed, and
    otherwise a blank.
    """
    characters = ascii_characters() if text.isascii() else all_characters()
    return _text(_native.fold_text(_points(text), characters))


def _points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _text(points: npt.NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


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
        """Return the numbers and weights of those terms that the index has, as `of` takes them."""
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


_MARK: Final = re.compile(r"[*#`|\[]")
"""Characters that Markdown may give a meaning to; those of `native/snippets.cpp`."""
_HEADING: Final = re.compile(r"#{1,6} (.*?)(?: #+)?")
_STRONG: Final = re.compile(r"(?<!\w)\*\*(?=[^\s*])((?:(?!\*\*).){1,300})(?<=[^\s*])\*\*(?!\w)")
_LINK: Final = re.compile(
    r"(?<![\w\])])!?\[([^\[\]]*)\]\((?:[^\s()]|\([^\s()]*\))*(?: \"[^\"]*\")?(?:\)|…?$)"
)
_DELIMITERS: Final = frozenset("…|: -")
_BAR: Final = re.compile(r"\s*(?<!\\)\|\s*")


def without_markup(passage: str) -> str:
    r"""Return a folded passage as one line, without the marks of Markdown.

    passage  as `folded` returns it, cut anywhere
    Headings, strong text, code and links keep their texts, cells of tables are separated by blanks.
    Marks of list items stay. Cost: 0.3 µs without marks.

    >>> from klsa_search.search.snippets import without_markup
    >>> without_markup("## Paper jam\fOpen the **cover**, see [parts](parts.md).")
    'Paper jam Open the cover, see parts.'
    """
    if not _MARK.search(passage):
        return passage.replace("\n", " ").replace("\f", " ")
    lines = re.split(r"[\n\f]", passage)
    barred = [False, *("|" in line for line in lines), False]
    shown = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("|") or (barred[number] and (barred[number - 1] or barred[number + 1])):
            shown.append(_row(line))
        else:
            heading = _HEADING.fullmatch(line)
            shown.append(heading[1] if heading else line)
    plain = " ".join(filter(None, shown))
    plain = _STRONG.sub(r"\1", _LINK.sub(r"\1", plain))
    return " ".join(plain.replace("`", "").split())


def _row(line: str) -> str:
    """Return the cells of a row of a table; blank for the line below its head."""
    is_delimiter = "--" in line and _DELIMITERS.issuperset(line)
    return "" if is_delimiter else _BAR.sub(" ", line).strip()
