"""Embedders that are Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klsa_search.core.cached import lazy_property
from klsa_search.embedding.model import Embeddings, EmbedKind

EmbeddingFunction = Callable[[Sequence[str], EmbedKind], Any]
"""Returns the vectors of texts, (n, dimension); the kind is "query" or "document"."""


class FunctionEmbedder:
    """An embedder that calls a function.

    name  identifies the function, and is its fingerprint unless it has an attribute `fingerprint`
    """

    def __init__(self, function: EmbeddingFunction, name: str) -> None:
        self.name = name
        self.fingerprint = str(getattr(function, "fingerprint", name))
        self._function = function

    @lazy_property
    def dimension(self) -> int:
        """Return the dimension of the vector of a text."""
        return int(np.shape(self._function(["dimension"], "document"))[-1])

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts."""
        vectors: Embeddings = self._function(texts, kind)
        return vectors
