"""Evidence: what a search reads of all documents, as answers that add up over partitions.

All partitions of an index have the same words with the same frequencies. Corrections, prefixes and
phrases also depend on what documents contain. Parsing reads that as answers to questions, which
name all that an answer depends on: the answers of the partitions are added, and parsing with the
sums is the same in all of them. So are rankings that depend on all documents, such as by vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, Final, TypeVar

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

    def is_answered(self, question: Question) -> bool:
        """Return whether all partitions have answered a question."""
        return (*self._kind, *question) in self.shared

    def of(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        """Return the answer to a question: the known one, or that of the documents of the index."""
        result: Answer
        question = (*self._kind, *question)
        if question in self.shared:
            self.uncacheable_reads += not isinstance(self.shared, SharedAnswers)
            result = self.shared[question]
            return result
        if question not in self.local:
            self.local[question] = answer()
        self.uncacheable_reads += 1
        result = self.local[question]
        return result

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
            total_: _Total = self.shared[question]
            return total_
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
        """Return the same."""
        return self

    def of(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        """Return the answer of the documents."""
        return answer()

    def cached(
        self, table: dict[Hashable, _Total], key: Hashable, find: Callable[[], _Total]
    ) -> _Total:
        """Return what follows from the documents, found once."""
        key = "local", key
        if key not in table:
            if len(table) >= MAX_CACHED:
                table.clear()
            table[key] = find()
        return table[key]

    def total(self, question: Question, answer: Callable[[], _Total]) -> _Total:
        """Return the answer of the documents."""
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
