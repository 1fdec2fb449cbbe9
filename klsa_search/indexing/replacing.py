"""Replace: what an index holds before it is built anew, and what may not take its place."""

from __future__ import annotations

from pathlib import Path

from klsa_search.collection import Collection
from klsa_search.collection.model import Placed
from klsa_search.errors import CollectionError, StoreError
from klsa_search.store import Manifest, current_generation, read_manifest, sealed_generations


def held(path: Path) -> Manifest | None:
    """Say what an index holds, of the former format too; None for nothing, and what cannot be read.

    Where CURRENT or what it names is damaged, the newest generation that is whole counts.
    """
    try:
        return read_manifest(current_generation(path), former=True)
    except StoreError:
        for generation in reversed(sealed_generations(path)):
            try:
                return read_manifest(generation, former=True)
            except StoreError:
                continue
    return None


def other_source(path: Path, collection: Collection) -> Manifest | None:
    """What an index holds, if that is documents of another source than `collection`; else None.

    Another one is of another name, or of the same name in another place, where both are known.

    >>> other_source(Path("index/reports"), open_collection("reports.jsonl")) is None
    True
    """
    before = held(path)
    if before is None or not before.counts.documents:
        return None
    place = address(collection)
    moved = None not in (before.source_path, place) and before.source_path != place
    return before if moved or before.source != collection.name else None


def refuse_other_source(path: Path, collection: Collection) -> None:
    """StoreError where documents of another source would be replaced."""
    before = other_source(path, collection)
    if before is not None:
        coming = address(collection) or collection.name
        raise StoreError(
            f"{path} holds {before.counts.documents:,} documents of another source, "
            f"{before.source_path or before.source}, and those of {coming} would take their "
            "place: choose another name, or allow it (--replace, in Python replace=True)"
        )


def address(collection: Collection) -> str | None:
    """Where a collection lies; None where it has no place, or its name tells enough."""
    return collection.address if isinstance(collection, Placed) else None


def refuse_to_empty(path: Path, documents: int, collection: Collection) -> None:
    """Keep a collection that turns out empty from replacing an index that holds documents."""
    before = None if documents else held(path)
    if before is not None and before.counts.documents:
        raise CollectionError(
            f"{collection.name} holds no document, and index {path.name} holds "
            f"{before.counts.documents}: it stays as it is; look at the source, or delete the "
            "index first"
        )
