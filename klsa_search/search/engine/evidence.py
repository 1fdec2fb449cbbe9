"""Answers about documents: added up over partitions, and cached over writes.

All partitions of an index have the same words with the same frequencies. Corrections, prefixes and
phrases also depend on what documents contain. Parsing reads that as answers to questions, which
name all that an answer depends on: the answers of the partitions are added, and parsing with the
sums is the same in all of them. So are rankings that depend on all documents, such as by vectors.

An answer, such as how many documents contain a phrase, follows from the documents that contain all
of some terms. It is computed again only after such a document was written or deleted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

Question = tuple[Hashable, ...]
"""What is asked, and the words that the answer depends on: `("phrase", "", "wet", "roads")`."""

Answers = Mapping[Question, Any]
"""Answers by question: numbers, counts or tuples, which are added."""

NONE: Final[Answers] = MappingProxyType({})

Answer = TypeVar("Answer", int, Counter[str], tuple[Any, ...])
_Total = TypeVar("_Total")

MAX_CACHED: Final = 2**14
"""Entries of a table of what follows from answers, at most."""


class AnswersPending(Exception):
    """Ends a ranking until all partitions have answered its questions."""


class Evidence:
    """Answers the questions of one call.

    shared             answers of all partitions
    local              answers of the documents of one index, to questions that are not in `shared`
    uncacheable_reads  number of times that an answer was used which other calls may not know
    """

    def __init__(self, shared: Answers = NONE) -> None:
        self.shared = shared
        self.local: dict[Question, Any] = {}
        self.uncacheable_reads = 0
        self._kind: Question = ()

    def of_passages(self) -> Evidence:
        """Return the evidence of passages: the same questions about them have other answers."""
        evidence = copy(self)  # both keep answers in one table
        evidence._kind = ("passages",)
        return evidence

    def of(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        """Return the answer to a question: the known one, or that of the documents of the index."""
        question = (*self._kind, *question)
        if question in self.shared:
            self.uncacheable_reads += not isinstance(self.shared, SharedAnswers)
            return cast(Answer, self.shared[question])
        if question not in self.local:
            self.local[question] = answer()
        self.uncacheable_reads += 1
        return cast(Answer, self.local[question])

    def cached(
        self, table: dict[Hashable, _Total], key: Hashable, find: Callable[[], _Total]
    ) -> _Total:
        """Return what follows from answers: found once, if it depends on shared answers alone.

        table  of one state of the index, which its documents alone may share
        """
        if key in table:
            return table[key]
        before, answer_ = self.uncacheable_reads, find()
        if self.uncacheable_reads == before and len(table) < MAX_CACHED:
            table[key] = answer_
        return answer_

    def total(self, question: Question, answer: Callable[[], _Total]) -> _Total:
        """Return the sum of the answers of all partitions; raise AnswersPending until all did."""
        question = (*self._kind, *question)
        if question in self.shared:
            return cast(_Total, self.shared[question])
        self.local[question] = answer()
        raise AnswersPending


class SharedAnswers(dict[Question, Any]):
    """Answers of all partitions in one state, which all searches of it share; thread-safe."""

    def merge(self, answers: Sequence[Answers]) -> bool:
        """Add the sums of answers to the questions that all partitions ask; return if any are new.

        Others are left out: another search may have merged what some partitions do not ask.
        """
        new = set(answers[0]).intersection(*answers[1:]).difference(self)
        for question in new:
            self.setdefault(question, reduce(add, (part[question] for part in answers)))
        return bool(new)


class _LocalEvidence(Evidence):
    """Answers of the documents of one snapshot, which are not kept."""

    def of_passages(self) -> Evidence:
        return self

    def of(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        return answer()

    def cached(
        self, table: dict[Hashable, _Total], key: Hashable, find: Callable[[], _Total]
    ) -> _Total:
        key = "local", key
        if key not in table:
            if len(table) >= MAX_CACHED:
                table.clear()
            table[key] = find()
        return table[key]

    def total(self, question: Question, answer: Callable[[], _Total]) -> _Total:
        return answer()


LOCAL: Final = _LocalEvidence()
"""Evidence of one snapshot alone; what follows from it can be cached with the snapshot."""


def added(answers: Sequence[Answers]) -> dict[Question, Any]:
    """Return the sums of the answers of all partitions to the questions that all of them ask.

    A question that depends on an unknown answer is left for the next call, which knows it.
    Partitions in different states may ask different questions; the sums are then of those that ask.
    """
    asked = set(answers[0]).intersection(*answers[1:]) or set().union(*answers)
    return {
        question: reduce(add, (part[question] for part in answers if question in part))
        for question in asked
    }


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
