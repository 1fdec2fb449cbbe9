"""Replace: what an existing index contains, and what may not replace it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from klsa_search.collection import Collection
from klsa_search.collection.model import Placed
from klsa_search.errors import CollectionError, StoreError
from klsa_search.store.current import current_generation
from klsa_search.store.generations import sealed_generations
from klsa_search.store.log import WriteLog
from klsa_search.store.manifest import Manifest, read_manifest
from klsa_search.store.marking import is_index

_ALLOW = "allow it (--replace, in Python replace=True)"


def held(path: Path) -> list[Manifest]:
    """Say what an index may hold, of a former format too: what CURRENT names.

    Where that, or CURRENT, cannot be read: every generation that can, the newest first.
    """
    try:
        return [read_manifest(current_generation(path), former=True)]
    except StoreError:
        readable = []
        for generation in reversed(sealed_generations(path)):
            with suppress(StoreError):
                readable.append(read_manifest(generation, former=True))
        return readable


def is_unreadable(path: Path) -> bool:
    """Return whether an index has generations, but none with a readable manifest."""
    return not held(path) and bool(sealed_generations(path))


def other_source(path: Path, collection: Collection) -> Manifest | None:
    """Return the manifest of an index that was built from another source, else None.

    Another source has another name, or the same name in another place, if both places are known.

    >>> other_source(Path("index/reports"), open_collection("reports.jsonl")) is None
    True
    """
    place = address(collection)
    for before in held(path):
        moved = None not in (before.source_path, place) and before.source_path != place
        if before.counts.documents and (moved or before.source != collection.name):
            return before
    return None


def refuse_other_source(path: Path, collection: Collection) -> None:
    """StoreError if documents of another or an unknown source would be lost."""
    before, coming = other_source(path, collection), address(collection) or collection.name
    if before is not None:
        raise StoreError(
            f"`{path}` has {before.counts.documents:,} documents of another "
            f"source, `{before.source_path or before.source}`, which `{coming}` "
            f"would replace; choose another name, or {_ALLOW}"
        )
    if is_unreadable(path):
        raise StoreError(
            f"`{path}` is an index that this version cannot read, and `{coming}` "
            f"would replace it; choose another name, or {_ALLOW}"
        )


def refuse_to_shrink(path: Path, documents: int, collection: Collection, *, replace: bool) -> None:
    """Refuse to replace an index by nothing, or by less than half of its documents.

    CollectionError if the collection is empty and the index is not; documents of the index itself
    may all have been deleted. StoreError if half are lost, unless `replace`, and the source has no
    place: all records that are passed in Python have one name, so it does not tell them apart.
    """
    if documents and (replace or address(collection) is not None):
        return
    most = max((before.counts.documents for before in held(path)), default=0)
    if not documents and most and collection.format != "index":
        raise CollectionError(
            f"{collection.name} has no documents, and index `{path.name}` has "
            f"{most}, so it was not changed; check the source, or delete the index "
            "first"
        )
    if not replace and 2 * documents < most and address(collection) is None:
        raise StoreError(
            f"`{path}` has {most:,} documents, and only {documents:,} would "
            f"replace them; choose another name if they are others, or {_ALLOW}"
        )


def refuse_to_drop_writes(path: Path) -> None:
    """StoreError where an index was written to since it was built: its source has none of that.

    A log that cannot be read may hold writes. Where CURRENT cannot be read, any generation may have
    been in use.
    """
    if not is_index(path):
        return
    try:
        in_use = [current_generation(path)]
    except StoreError:
        in_use = sealed_generations(path)
    puts = deletes = 0
    for generation in in_use:
        try:
            batches = WriteLog(generation).batches()
        except StoreError as fault:
            raise StoreError(
                f"cannot replace `{path}`: its log of writes cannot be read, so "
                "documents added or deleted after the build would be lost "
                f"({fault.message}); to lose them, {_ALLOW}"
            ) from fault
        puts += sum(batch.puts for batch in batches if batch.undone is None)
        deletes += sum(batch.deletes for batch in batches if batch.undone is None)
    if puts or deletes:
        raise StoreError(
            f"`{path}` has writes after its build, {puts:,} documents added and "
            f"{deletes:,} deleted, which its source does not know; rebuild it from "
            f"its stored documents (klsa-index refit {path.name}), or {_ALLOW}"
        )


def address(collection: Collection) -> str | None:
    """Return the place of a collection; None if it has none, or its name is sufficient."""
    return collection.address if isinstance(collection, Placed) else None
