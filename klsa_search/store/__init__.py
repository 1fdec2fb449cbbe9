"""Keep: an index on disk, generation by generation."""

from klsa_search.store.documents import DocumentReader, DocumentWriter
from klsa_search.store.generations import (
    current_generation,
    delete_index,
    index_path,
    indexes_in,
    verify,
)
from klsa_search.store.manifest import Manifest, read_manifest

__all__ = [
    "DocumentReader",
    "DocumentWriter",
    "Manifest",
    "current_generation",
    "delete_index",
    "index_path",
    "indexes_in",
    "read_manifest",
    "verify",
]
