"""Keep: an index on disk, generation by generation."""

from klsa_search.store.checked import check_once, note_checked
from klsa_search.store.documents import DocumentReader, DocumentWriter
from klsa_search.store.generations import (
    current_generation,
    delete_index,
    index_path,
    indexes_in,
    verify,
)
from klsa_search.store.manifest import Manifest, read_manifest
from klsa_search.store.sum_check import SumCheck

__all__ = [
    "DocumentReader",
    "DocumentWriter",
    "Manifest",
    "SumCheck",
    "check_once",
    "current_generation",
    "delete_index",
    "index_path",
    "indexes_in",
    "note_checked",
    "read_manifest",
    "verify",
]
