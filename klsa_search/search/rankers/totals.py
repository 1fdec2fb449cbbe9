"""What rankers need of all documents: answers to questions, which add up over partitions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Total(Protocol):
    """Returns the sum of the answers of all partitions to a question: see `Evidence.total`."""

    def __call__(self, question: tuple[Hashable, ...], answer: Callable[[], T], /) -> T:
        """Return the sum, given what computes the answer of the documents of a snapshot."""


def own_total(question: tuple[Hashable, ...], answer: Callable[[], T]) -> T:
    """Return the answer of the documents of a snapshot, if there are no others."""
    return answer()
