"""Compute the vectors that documents of an index lack, before it is rebuilt with them.

Vectors are kept in a work file of the index until the new generation has them, so an interrupted
computation continues where it was: see `storage.vectors`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.config import Settings
from klsa_search.core.progress import VECTORS, Progress
from klsa_search.indexing.estimate import number_of_passages
from klsa_search.indexing.reading import StoredCollection, build_batches
from klsa_search.search.models import (
    refuse_other_model,
    rows_of,
    texts_to_embed,
    with_rows,
    without_spaces,
)
from klsa_search.storage.vectors import ComputedVectors

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedEmbedder
    from klsa_search.search.index import Index

BATCH: Final = 512
"""Texts that are embedded, and stored, at once."""


@dataclass(frozen=True)
class _Space:
    """A space that is computed.

    dimension  of its vectors so far
    keep       whether documents keep the vectors they have; else all are computed again
    is_own     whether all are by this embedder, so that those of another division are computed
    """

    name: str
    embedder: CheckedEmbedder
    dimension: int | None
    keep: bool
    is_own: bool

    def texts(self, document: Document, words: int | None) -> list[str]:
        """Return the texts whose vectors are to be computed; none if it has them."""
        rows = vectors_of(document).get(self.name) if self.keep else None
        if rows is not None and not self.is_own:
            return []
        texts = texts_to_embed(document, words)
        return texts if rows is None or len(rows) != len(texts) else []


def documents_without_vectors(
    index: Index, space: str, embedder: CheckedEmbedder, replaced: Collection[str]
) -> int:
    """Return how many documents of an index have text and no vectors of the embedder."""
    (chosen,) = _spaces(index, {space: embedder}, replaced)
    words = _passage_words(index, index.settings)
    return sum(bool(chosen.texts(document, words)) for document in index.live_documents())


@contextmanager
def with_computed_vectors(
    index: Index,
    collection: StoredCollection,
    embedders: Mapping[str, CheckedEmbedder],
    settings: Settings,
    report: Progress,
    replaced: Collection[str],
) -> Iterator[None]:
    """Add the vectors of embedders to the documents of a snapshot, for a rebuild.

    settings  of the rebuild
    replaced  spaces whose vectors may be by another model and are computed again then
    The work file is removed when the block ends, and kept if it raises. SettingsError;
    EmbedderFailed; IndexBusy while another process computes vectors of the index.
    """
    spaces = _spaces(index, embedders, replaced)
    words = _passage_words(index, settings)
    computed = ComputedVectors(index.path.parent)
    fingerprints = {space.name: space.embedder.fingerprint for space in spaces}
    collection.add_vectors(partial(_attached, spaces, words, computed), fingerprints)
    total = len(collection)
    try:
        # Reading the documents computes and stores their vectors.
        for number, _ in enumerate(collection.documents(), 1):
            if number % BATCH == 0:
                report(VECTORS, number, total)
        report(VECTORS, total, total)
        yield
    except BaseException:
        computed.close()
        raise
    computed.remove()


def _spaces(
    index: Index, embedders: Mapping[str, CheckedEmbedder], replaced: Collection[str]
) -> list[_Space]:
    entries = {entry.name: entry for entry in index.manifest.vectors}
    dimensions = {entry.name: entry.dimension for entry in index.vector_spaces}
    spaces = []
    for name, embedder in embedders.items():
        entry = entries.get(name)
        if entry is not None and name not in replaced:
            refuse_other_model(index.name, entry, embedder)
        is_own = entry is not None and entry.fingerprint == embedder.fingerprint
        keep = is_own or name not in replaced
        dimension = dimensions.get(name) if keep else None
        spaces.append(_Space(name, embedder, dimension, keep, is_own))
    return spaces


def _passage_words(index: Index, settings: Settings) -> int | None:
    """Return the words of a passage after a rebuild; None if it keeps documents whole."""
    texts = (document.text for document in index.live_documents())
    return None if number_of_passages(texts, settings) is None else settings.passage_words


def _attached(
    spaces: Sequence[_Space],
    words: int | None,
    computed: ComputedVectors,
    documents: Iterator[Document],
) -> Iterator[Document]:
    """Yield documents with their vectors, which are computed and stored if they are not yet."""
    for batch in build_batches(documents):
        for space in spaces:
            texts_of = [space.texts(document, words) for document in batch]
            rows = _rows(space, dict.fromkeys(chain.from_iterable(texts_of)), computed)
            for at, texts in enumerate(texts_of):
                if texts:
                    vectors = np.stack([rows[text] for text in texts])
                    batch[at] = with_rows(batch[at], space.name, vectors)
                elif not space.keep:  # of another model
                    batch[at] = without_spaces(batch[at], {space.name})
        yield from batch


def _rows(
    space: _Space, texts: Iterable[str], computed: ComputedVectors
) -> dict[str, npt.NDArray[np.int8]]:
    fingerprint, wanted = space.embedder.fingerprint, list(texts)
    stored = dict(zip(wanted, computed.rows(fingerprint, wanted), strict=True))
    rows = {text: row for text, row in stored.items() if row is not None}
    missing = [text for text in wanted if text not in rows]
    for first in range(0, len(missing), BATCH):
        batch = missing[first : first + BATCH]
        vectors = rows_of(space.embedder, batch, space.dimension)
        computed.add(fingerprint, batch, vectors)
        rows |= zip(batch, vectors, strict=True)
    return rows
