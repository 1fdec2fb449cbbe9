"""Answers about documents and what follows from them: added up, and cached over writes.

All partitions of an index have the same words with the same frequencies. Corrections, prefixes and
phrases also depend on what documents contain. Parsing reads that as answers to questions, which
name all that an answer depends on: the answers of the partitions are added, and parsing with the
sums is the same in all of them. So are rankings that depend on all documents, such as by vectors.

An answer, such as how many documents contain a phrase, follows from the documents that contain all
of some terms. It is computed again only after such a document was written or deleted. How a word is
corrected, divided or joined follows from answers and from which documents contain some terms.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

Question = tuple[Hashable, ...]
"""What is asked, and the words that the answer depends on: `("phrase", "", "wet", "roads")`."""

Answers = Mapping[Question, Any]
"""Answers by question: numbers, counts or tuples, which are added."""

NONE: Final[Answers] = MappingProxyType({})

Answer = TypeVar("Answer", int, Counter[str], tuple[Any, ...])
_Total = TypeVar("_Total")

MAX_CACHED: Final = 2**14
"""Values that are derived from answers and terms, at most; 20 MB."""

MAX_KEY: Final = 256
"""Characters of the key of such a value, at most; longer ones, of long queries, are not cached."""


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

    def cached(self, derived: DerivedValues, key: Hashable, find: Callable[[], _Total]) -> _Total:
        """Return what follows from answers: found once, if it depends on shared answers alone."""
        if key in derived.of_all:
            return cast(_Total, derived.of_all[key])
        before, answer_ = self.uncacheable_reads, find()
        is_kept = self.uncacheable_reads == before and len(derived.of_all) < MAX_CACHED
        if is_kept and len(str(key)) <= MAX_KEY:
            derived.of_all[key] = answer_
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

    def cached(self, derived: DerivedValues, key: Hashable, find: Callable[[], _Total]) -> _Total:
        return derived.of(key, find)

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


ALL_TERMS: Final = 2**16 - 1
"""The bucket of what depends on all documents."""


def bucket_of(term: str) -> int:
    """Return the bucket of a term that an index may lack: others seldom have the same."""
    return hash(term) % ALL_TERMS


class AnswerCache:
    """Caches answers about the documents of an index and of its delta; thread-safe.

    derived  what follows from the statistics of terms: see `DerivedValues`
    One thread at a time calls `write` and `forget`.
    """

    def __init__(
        self,
        answers: Mapping[Hashable, tuple[int, object]] = MappingProxyType({}),
        derived: Mapping[Hashable, Any] = MappingProxyType({}),
    ) -> None:
        self.answers, self.derived = dict(answers), dict(derived)
        self.written = array("q")  # by term: the version that last changed a document with it
        self.buckets = array("q")  # the same by `bucket_of`; empty before the first write
        self.version = self.least = 0

    def write(self, terms: Mapping[int, str], count: int) -> None:
        """Note that documents with these terms were written or deleted.

        terms  by number
        count  number of terms of the index
        """
        self.version += 1
        self.written.frombytes(bytes(8 * (count - len(self.written))))
        self.buckets = self.buckets or array("q", bytes(8 * ALL_TERMS))
        for number, term in terms.items():
            self.written[number] = self.buckets[bucket_of(term)] = self.version

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
        self.cache, self.version = cache, version

    def extended(self) -> AnswerCache:
        """Return a new cache with the answers of an index without writes, for its delta."""
        return AnswerCache(self.cache.answers, self.cache.derived)

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
        version, answer = self.cache.answers.get(question, (-1, None))
        if version == self.version:
            return answer
        oldest = min(version, self.version)
        if oldest < self.cache.least:
            return None
        written, terms_of_cache = self.cache.written, len(self.cache.written)
        changed = (written[term] if term < terms_of_cache else 0 for term in terms if term >= 0)
        return answer if min(changed, default=oldest + 1) <= oldest else None

    def put(self, question: Hashable, answer: _Answer) -> _Answer:
        """Add an answer of this state, unless there is one of a later state; return it."""
        answers = self.cache.answers
        if answers.get(question, (-1,))[0] <= self.version:
            if len(answers) >= CAPACITY:
                self.cache.answers = answers = {}
            answers[question] = self.version, answer
        return answer


class _Entry(NamedTuple):
    """A value, the reader that last found it valid, its version, and what it was derived from."""

    reader: object  # not `DerivedValues`, which refers to the cache: no circle
    version: int
    buckets: array[int]
    value: Any


class _Lookups(threading.local):
    """Buckets of the terms that a thread has looked up for a value; None if it derives none."""

    buckets: set[int] | None = None


class DerivedValues:
    """What follows from answers and from which documents have which terms; thread-safe.

    Of one configuration and one state of an index; those before and after share what was derived
    from the statistics of some terms, until a document with one of these is written. They are the
    terms that are looked up meanwhile. `of_all` has what follows from answers of all partitions.
    """

    def __init__(self, view: AnswerView) -> None:
        self._cache, self._version, self._reader = view.cache, view.version, object()
        self._lookups, self.of_all = _Lookups(), dict[Hashable, Any]()

    def note(self, buckets: Iterable[int]) -> None:
        """Note that the terms of these buckets were looked up: see `bucket_of`."""
        if self._lookups.buckets is not None:
            self._lookups.buckets.update(buckets)

    def note_all(self) -> None:
        """Note that the value depends on all documents, or on the configuration."""
        self.note((ALL_TERMS,))

    def of(self, key: Hashable, derive: Callable[[], _Total]) -> _Total:
        """Return the value of a key. Cost: 1 µs, and 1 µs at the first time after a write."""
        reader, entry = self._reader, self._cache.derived.get(key)
        if entry is None or not (entry.reader is reader or self._is_valid(entry)):
            before, looked_up = self._lookups.buckets, set[int]()
            self._lookups.buckets = looked_up
            try:
                value = derive()
            finally:
                self._lookups.buckets = before
            buckets = {ALL_TERMS} if ALL_TERMS in looked_up else looked_up  # all, whatever else
            entry = _Entry(reader, self._version, array("H", buckets), value)
            if len(self._cache.derived) >= MAX_CACHED:
                self._cache.derived = {}
            if len(str(key)) <= MAX_KEY:
                self._cache.derived[key] = entry
        elif entry.reader is not reader:  # valid for both, and in between
            version = max(entry.version, self._version)
            self._cache.derived[key] = _Entry(reader, version, entry.buckets, entry.value)
        if self._lookups.buckets is not None:
            self._lookups.buckets.update(entry.buckets)
        result: _Total = entry.value
        return result

    def _is_valid(self, entry: _Entry) -> bool:
        """Return whether an entry of another reader is that of this one."""
        if ALL_TERMS in entry.buckets:
            return False
        written = self._cache.buckets
        latest = max(map(written.__getitem__, entry.buckets), default=0) if written else 0
        return latest <= min(entry.version, self._version)
