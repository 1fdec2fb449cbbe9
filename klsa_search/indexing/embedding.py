"""Compute the vectors of an index, and rebuild it with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from klsa_search.core.parallel import processors
from klsa_search.core.progress import Progress, open_progress
from klsa_search.indexing.computed_vectors import documents_without_vectors
from klsa_search.indexing.repartition import rebuilt
from klsa_search.search.index import Index
from klsa_search.search.models import Models
from klsa_search.search.opening import open_index

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder
    from klsa_search.embedding.opening import EmbeddingFunction


@dataclass(frozen=True)
class Embedded:
    """Result of `embed`.

    index      the index, open
    documents  number of documents whose vectors were computed; if 0, nothing was changed

    >>> from klsa_search.indexing import embed
    >>> found: Embedded = embed("index/reports", space="one", embedder=lambda texts, _: [[1.0]] * 6)
    >>> found.documents, found.index.generation
    (6, '000002')
    """

    index: Index
    documents: int


def embed(
    path: str | Path,
    *,
    space: str,
    embedder: Embedder | EmbeddingFunction | str,
    replace: bool = False,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
) -> Embedded:
    """Compute the vectors that documents of the index at `<home>/<name>` lack, and rebuild it.

    space     name of the vectors, such as `minilm`
    embedder  as for `klsa_search.embedding.open_embedder`; the index records its fingerprint
    replace   compute all vectors again if they are by another model, which is refused otherwise
    A document has one vector, or one for each of its passages. Searches and writes continue
    meanwhile. If the call is interrupted, another one continues where it was: vectors are stored in
    the folder of the index until the new generation has them. Cost: that of the embedder, and of
    `build`. SettingsError for another model; EmbedderFailed, with nothing changed; IndexBusy; other
    errors as for `refit`.

    >>> def counts(texts, kind):
    ...     return np.array([[text.count("coolant") + 0.1, text.count("road")] for text in texts])
    >>> embed("index/reports", space="counts", embedder=counts).documents
    6
    >>> index = klsa.open_index("index/reports", embedders={"counts": counts})
    >>> [hit.id for hit in index.search("a road", k=2)]
    ['tyre', 'copy']
    """
    from klsa_search.embedding.opening import open_embedder

    checked = open_embedder(embedder, threads=processors())
    replaced = (space,) if replace else ()
    index = open_index(path)
    lacking = documents_without_vectors(index, space, checked, replaced)
    if not lacking:
        return Embedded(index, 0)
    try:
        with open_progress(progress) as report:
            models = Models({space: checked})
            built = rebuilt(index, {}, report, memory, models=models, replaced=replaced)
            return Embedded(built, lacking)
    finally:
        index.close()
