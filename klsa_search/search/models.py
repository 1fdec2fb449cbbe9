"""The models of an open index: embedders of its spaces, and a reranker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedEmbedder, CheckedReranker, Embedder, Reranker
    from klsa_search.embedding.opening import EmbeddingFunction


@dataclass(frozen=True, slots=True)
class Models:
    """The models of an index; by default it has none, and nothing of them is imported.

    embedders  by space
    """

    embedders: Mapping[str, CheckedEmbedder] = field(default_factory=dict)
    reranker: CheckedReranker | None = None

    @classmethod
    def opened(
        cls,
        embedders: Mapping[str, Embedder | EmbeddingFunction | str],
        reranker: Reranker | str | None,
    ) -> Models:
        """Open embedders and a reranker; see `klsa_search.embedding.opening`."""
        if not embedders and reranker is None:
            return NO_MODELS
        from klsa_search.embedding.opening import open_embedder, open_reranker

        return cls(
            {space: open_embedder(embedder) for space, embedder in embedders.items()},
            None if reranker is None else open_reranker(reranker),
        )


NO_MODELS: Final = Models()
