"""Answers about documents that stay valid over writes of other documents.

An answer, such as how many documents contain a phrase, follows from the documents that contain all
of some terms. It is computed again only after such a document was written or deleted.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar, cast

_Answer = TypeVar("_Answer")

CAPACITY: Final = 2**14
"""Answers that are cached; some MB."""


class AnswerCache:
    """Caches answers about the documents of an index and of its delta; thread-safe.

    One thread at a time calls `write` and `forget`.
    """

    def __init__(
        self, answers: Mapping[Hashable, tuple[int, object]] = MappingProxyType({})
    ) -> None:
        self.answers = dict(answers)
        self.written = array("q")  # by term: the version that last changed a document with it
        self.version = self.least = 0

    def write(self, terms: Iterable[int], count: int) -> None:
        """Note that documents with these terms were written or deleted.

        count  number of terms of the index
        """
        self.version += 1
        self.written.frombytes(bytes(8 * (count - len(self.written))))
        for term in terms:
            self.written[term] = self.version

    def forget(self) -> None:
        """Note that all documents have changed."""
        self.version += 1
        self.least = self.version

    def present(self) -> AnswerView:
        """Return the answers for the present documents."""
        return AnswerView(self, self.version)


class AnswerView:
    """Answers about the documents of one state of an index; thread-safe."""

    def __init__(self, cache: AnswerCache, version: int) -> None:
        self._cache, self._version = cache, version

    def extended(self) -> AnswerCache:
        """Return a new cache with the answers of an index without writes, for its delta."""
        return AnswerCache(self._cache.answers)

    def of(
        self, question: Hashable, terms: Iterable[int], answer: Callable[[], _Answer]
    ) -> _Answer:
        """Return the answer to a question, found at most once while it stays valid.

        terms  numbers of terms, negative ones are ignored; only documents that contain all of them
               change the answer
        """
        cached = self.get(question, terms)
        return self.put(question, answer()) if cached is None else cast(_Answer, cached)

    def get(self, question: Hashable, terms: Iterable[int]) -> object:
        """Return a valid answer; None if there is none. Cost: 0.5 µs a term."""
        version, answer = self._cache.answers.get(question, (-1, None))
        if version == self._version:
            return answer
        oldest = min(version, self._version)
        if oldest < self._cache.least:
            return None
        written, terms_of_cache = self._cache.written, len(self._cache.written)
        changed = (written[term] if term < terms_of_cache else 0 for term in terms if term >= 0)
        return answer if min(changed, default=oldest + 1) <= oldest else None

    def put(self, question: Hashable, answer: _Answer) -> _Answer:
        """Add an answer of this state, unless there is one of a later state; return it."""
        answers = self._cache.answers
        if answers.get(question, (-1,))[0] <= self._version:
            if len(answers) >= CAPACITY:
                self._cache.answers = answers = {}
            answers[question] = self._version, answer
        return answer
