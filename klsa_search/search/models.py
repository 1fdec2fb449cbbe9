"""The models of an open index: embedders of its spaces, and a reranker.

An embedder computes vectors of queries, and of documents that are written. What it cannot compute
is left out and named: a search is by words then, and documents are stored without vectors.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import VECTORS, Rows, quantised, set_vectors, vectors_of
from klsa_search.core.config import Settings
from klsa_search.embedding.model import embedded_text
from klsa_search.errors import EmbedderFailed, SettingsError
from klsa_search.storage.columns.declared import FieldWarning
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.passages import passages_of

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedEmbedder, CheckedReranker, Embedder, Reranker
    from klsa_search.embedding.opening import EmbeddingFunction


WRITE_SECONDS: Final = 20.0
"""Seconds that a write waits for the vectors of its documents."""

BATCH: Final = 64
"""Texts that are embedded between two looks at the clock."""


class EmbeddedQuery(NamedTuple):
    """The vector of a query by space, as `Index.search` takes it, and what failed."""

    vector: Mapping[str, object] | None
    warnings: tuple[str, ...]


NOT_EMBEDDED: Final = EmbeddedQuery(None, ())


def refuse_other_model(name: str, entry: SpaceEntry, embedder: CheckedEmbedder) -> None:
    """Raise SettingsError if the vectors of a space of an index are by another model."""
    if entry.fingerprint not in (None, embedder.fingerprint):
        raise SettingsError(
            f"the vectors `{entry.name}` of index `{name}` were computed by another model than "
            f"`{embedder.name}` ({entry.fingerprint} is not {embedder.fingerprint}); open the "
            f"index with that model, or compute them again: klsa-index embed {name} --space "
            f"{entry.name} --embedder ... --replace",
            field="embedder",
        )


def embedded_query(
    embedders: Mapping[str, CheckedEmbedder],
    name: str,
    spaces: Sequence[SpaceEntry],
    dimensions: Mapping[str, int],
    query: str,
) -> EmbeddedQuery:
    """Return the vector of a query in the first space with documents and an embedder."""
    entries = {entry.name: entry for entry in spaces}
    for space, embedder in embedders.items():
        if space not in dimensions or not query.strip():
            continue
        try:
            if space in entries:  # a rebuild may have changed the model
                refuse_other_model(name, entries[space], embedder)
            (row,) = embedder.embed([query], "query")
            refuse_other_dimension(embedder, len(row), dimensions[space])
        except (EmbedderFailed, SettingsError) as failure:
            return EmbeddedQuery(None, (f"ranked by words only: {failure.message}",))
        return EmbeddedQuery({space: row}, ())
    return NOT_EMBEDDED


def texts_to_embed(document: Document, words: int | None) -> list[str]:
    """Return the texts whose vectors a document has: of its passages, or of itself.

    words  of a passage, None if documents are not divided
    A document without text has none.
    """
    parts = [document] if words is None else list(passages_of(document, words))
    texts = [embedded_text(part) for part in parts]
    return texts if all(texts) else []


def embed_documents(
    embedders: Mapping[str, CheckedEmbedder],
    name: str,
    manifest: Manifest,
    settings: Settings,
    puts: Sequence[Document],
) -> tuple[list[Document], list[FieldWarning]]:
    """Return documents with vectors in the spaces of the index that have an embedder.

    Those that have vectors keep them. The warnings name others, as an embedder failed or
    needed longer than `WRITE_SECONDS`.
    """
    documents, warnings = list(puts), list[FieldWarning]()
    words = settings.passage_words if manifest.has_passages else None
    entries = {entry.name: entry for entry in manifest.vectors}
    for space, embedder in embedders.items():
        if space not in entries:  # `klsa-index embed`, or a refit, begins the space
            continue
        todo = {
            number: texts
            for number, document in enumerate(documents)
            if space not in vectors_of(document) and (texts := texts_to_embed(document, words))
        }
        reason = f"the embedder needs longer than {WRITE_SECONDS:.0f} s for all documents"
        try:
            refuse_other_model(name, entries[space], embedder)
            for number, rows in embedded_rows(embedder, todo, entries[space].dimension):
                documents[number] = with_rows(documents[number], space, rows)
                del todo[number]
        except (EmbedderFailed, SettingsError) as failure:
            reason = failure.message
        warnings += [
            FieldWarning(
                documents[number].id,
                VECTORS,
                f"document {documents[number].id!r} is stored without a vector in `{space}`: "
                f"{reason}; klsa-index embed computes it",
            )
            for number in todo
        ]
    return documents, warnings


def embedded_rows(
    embedder: CheckedEmbedder, texts: Mapping[int, Sequence[str]], dimension: int
) -> Iterator[tuple[int, Rows]]:
    """Yield the vectors of documents, of which each has some texts, until the time is over.

    EmbedderFailed, also if their dimension differs.
    """
    end = time.monotonic() + WRITE_SECONDS
    waiting = list(texts)
    while waiting and (left := end - time.monotonic()) > 0:
        batch = [waiting.pop(0)]
        size = len(texts[batch[0]])
        while waiting and size + len(texts[waiting[0]]) <= BATCH:
            size += len(texts[waiting[0]])
            batch.append(waiting.pop(0))
        of_batch = [text for number in batch for text in texts[number]]
        rows = rows_of(embedder, of_batch, dimension, seconds=left)
        ends = np.cumsum([len(texts[number]) for number in batch])
        yield from zip(batch, np.split(rows, ends[:-1]), strict=True)


def rows_of(
    embedder: CheckedEmbedder,
    texts: Sequence[str],
    dimension: int | None,
    *,
    seconds: float | None = None,
) -> Rows:
    """Return the vectors of texts in stored form; EmbedderFailed.

    dimension  of the space, None if it has no vectors yet
    seconds    time limit of each batch, if it is another than usual
    """
    vectors = embedder.embed(texts, "document", seconds=seconds)
    refuse_other_dimension(embedder, vectors.shape[1], dimension)
    return quantised(vectors)


def refuse_other_dimension(embedder: CheckedEmbedder, stored: int, dimension: int | None) -> None:
    """Raise EmbedderFailed if vectors have another dimension than the space."""
    if dimension not in (None, stored):
        raise EmbedderFailed(
            f"embedder `{embedder.name}` returns vectors of {stored:,} values, and the vectors of "
            f"the index have {dimension:,}; use the model of the documents",
            field="embedder",
        )


def with_rows(document: Document, space: str, rows: Rows) -> Document:
    """Return a document with vectors in one more space."""
    return set_vectors(document, {**vectors_of(document), space: rows})


def without_spaces(document: Document, spaces: Collection[str]) -> Document:
    """Return a document without its vectors in some spaces."""
    vectors = vectors_of(document)
    if vectors.keys().isdisjoint(spaces):
        return document
    kept = {name: rows for name, rows in vectors.items() if name not in spaces}
    return set_vectors(document, kept)


def has_same_text(one: Document, other: Document) -> bool:
    """Return whether the vectors of one document are those of the other."""
    return (one.title, one.text) == (other.title, other.text)


def without_outdated(
    document: Document, stored: Document, spaces: Sequence[SpaceEntry]
) -> Document:
    """Return a document without vectors that an embedder computed for another text of it."""
    if has_same_text(document, stored):
        return document
    computed = {entry.name for entry in spaces if entry.fingerprint}
    return without_spaces(document, computed)


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
