"""Replace: what an index holds before it is built anew, and what may not take its place."""

from __future__ import annotations

from pathlib import Path

from klsa_search.collection import Collection
from klsa_search.errors import CollectionError, StoreError
from klsa_search.store import Manifest, current_generation, read_manifest, sealed_generations


def held(path: Path) -> Manifest | None:
    """Say what an index holds; None for nothing, and for what this version cannot read.

    Where CURRENT or what it names is damaged, the newest generation that is whole counts.
    """
    try:
        return read_manifest(current_generation(path))
    except StoreError:
        for generation in reversed(sealed_generations(path)):
            try:
                return read_manifest(generation)
            except StoreError:
                continue
    return None


def refuse_to_empty(path: Path, documents: int, collection: Collection) -> None:
    """Keep a collection that turns out empty from replacing an index that holds documents."""
    before = None if documents else held(path)
    if before is not None and before.counts.documents:
        raise CollectionError(
            f"{collection.name} holds no document, and index {path.name} holds "
            f"{before.counts.documents}: it stays as it is; look at the source, or delete the "
            "index first"
        )
