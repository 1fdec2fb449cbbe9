"""The protocols of embedders and rerankers, and the text of a document that they get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document

T = TypeVar("T")

EmbedKind = Literal["query", "document"]
"""What a text is; some models embed queries and documents differently."""

Embeddings = npt.NDArray[np.float32]
"""(n, dimension), one row for each text."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; used by several threads at once.

    >>> class Lengths:
    ...     name, fingerprint, dimension = "lengths", "lengths-1", 2
    ...
    ...     def embed(self, texts, kind):
    ...         return np.array([[1, len(text)] for text in texts], np.float32)
    >>> isinstance(Lengths(), Embedder)
    True
    """

    @property
    def name(self) -> str:
        """Return the name for messages."""

    @property
    def fingerprint(self) -> str:
        """Return a text that identifies model and preprocessing; indexes record it."""

    @property
    def dimension(self) -> int:
        """Return the number of components of a vector; EmbedderFailed if it is unknown yet."""

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts, (n, dimension)."""


@runtime_checkable
class Reranker(Protocol):
    """Scores texts for a query, such as a cross-encoder; used by several threads at once.

    >>> def longest(query, texts):
    ...     return [len(text) for text in texts]
    >>> isinstance(longest, Reranker)
    True
    """

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text; higher is better."""


def embedded_text(document: Document) -> str:
    """Return the text of a document, or passage, for an embedder or reranker.

    >>> print(embedded_text(Document(id="oil", title="Oil", text="Change it.")))
    Oil
    Change it.
    """
    return "\n".join(part for part in (document.title, document.text) if part.strip())


def in_batches(work: Callable[[Sequence[str]], Any], texts: Sequence[str], size: int) -> list[Any]:
    """Return one result of `work` for each text, computed in batches of similar length.

    Texts of a batch are padded to the longest of them, so sorting saves most of the work.
    """
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    results: list[Any] = [None] * len(texts)
    for start in range(0, len(order), size):
        numbers = order[start : start + size]
        for number, result in zip(numbers, work([texts[at] for at in numbers]), strict=True):
            results[number] = result
    return results
