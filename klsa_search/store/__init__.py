"""Keep: an index on disk, generation by generation."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.store.documents import DocumentReader, DocumentWriter
    from klsa_search.store.generations import (
        current_generation,
        delete_index,
        index_path,
        indexes_in,
        verify,
    )
    from klsa_search.store.manifest import Manifest, read_manifest
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "documents": "DocumentReader DocumentWriter",
            "generations": "current_generation delete_index index_path indexes_in verify",
            "manifest": "Manifest read_manifest",
        },
    )

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
