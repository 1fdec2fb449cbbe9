"""Checks before a build: of its memory, its location, what it replaces, and fields of settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ByteSize, TypeAdapter, ValidationError

from klsa_search.collection.model import Collection
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import TEXT, TITLE
from klsa_search.core.parallel import memory_limit
from klsa_search.core.wording import counted, in_bytes
from klsa_search.errors import CollectionError, SettingsError, StoreError
from klsa_search.indexing.estimate import Size, memory_needed
from klsa_search.indexing.reading import StoredCollection
from klsa_search.lowrank import sparse_expansion
from klsa_search.storage.columns.values import NO_VALUE
from klsa_search.storage.current import current_build
from klsa_search.storage.directories import is_index, partition_folders
from klsa_search.storage.generations import committed_generations
from klsa_search.storage.manifest import FieldsEntry, Manifest, read_manifest
from klsa_search.storage.partitions import documents_of, is_partitioned
from klsa_search.storage.write_log import WriteLog

SHARE: Final = 0.75
"""Share of the memory of the machine, or of its control group, that a build uses by default."""

_LOCATED: Final = OpenedCollection, StoredCollection
"""Collections that know their place, and the options they are read with."""


def memory_budget(memory: str | int | None) -> int:
    """Return the budget in bytes: of "4GiB", a number of bytes, or None for `SHARE` of the memory.

    Raise SettingsError for anything else.
    """
    if memory is None:
        return int(SHARE * memory_of_machine())
    with suppress(ValidationError):
        if (budget := TypeAdapter(ByteSize).validate_python(memory)) > 0:
            return budget
    raise SettingsError(
        f"memory = {memory!r} is not an amount of memory; give one such as 4GiB, or a number of "
        "bytes",
        field="memory",
    )


def memory_of_machine() -> int:
    """Return the memory available to this process in bytes: of the machine, or of its cgroups."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    return total if limit is None else min(total, limit)


def refuse_overlap(path: Path, collection: Collection) -> None:
    """Raise SettingsError if the source and the index or its directory are in each other.

    The index would be read as part of the source. A source file may be in the index directory.
    """
    root = collection.root if isinstance(collection, OpenedCollection) else None
    if root is None:
        return
    source, index, home = root.resolve(), path.resolve(), path.parent.resolve()
    for location in (home, index):
        if source == location:
            fact = f"{location} is the source itself"
        elif source in location.parents and source.is_dir():
            fact = f"{location} lies within the source {root}"
        elif location in source.parents and (source.is_dir() or location == index):
            fact = f"the source {root} lies within {location}"
        else:
            continue
        raise SettingsError(
            f"home = `{path.parent}`: {fact}; choose an index directory apart from "
            "the source (--home, in Python home=)",
            field="home",
        )


def refuse_beyond_memory(
    size: Size,
    settings: Settings,
    memory: int,
    partitions: int = 1,
    *,
    about: str = "",
    kind: Literal["documents", "passages"] = "documents",
) -> None:
    """Raise SettingsError if a collection does not fit into the memory or an index.

    memory  in bytes, for each of the partitions
    about   "about " if the size is an estimate
    """
    number = f"{about}{size.documents:,} {kind}"
    if size.documents > partitions * sparse_expansion.MAX_DOCUMENTS:
        raise SettingsError(
            f"{number} are more than an index can number ({sparse_expansion.MAX_DOCUMENTS:,}); "
            "divide them into partitions, or among several indexes"
        )
    part = Size(*(-(-value // partitions) for value in size))
    needed = memory_needed(part, settings)
    if needed > memory:
        other = "set passages = 'off'" if kind == "passages" else "divide them into more partitions"
        raise SettingsError(
            f"memory = {in_bytes(memory)} is not enough: {number} need {in_bytes(needed)}; allow "
            f"more, {other}, or build from fewer documents",
            field="memory",
        )


_ALLOW = "allow it (--replace, in Python replace=True)"


def existing_index(path: Path) -> list[Manifest]:
    """Return the manifest of the generation in use.

    If it or CURRENT cannot be read: all readable manifests, the newest first.
    """
    try:
        return [read_manifest(current_build(path))]
    except StoreError:
        readable = []
        for generation in reversed(committed_generations(path)):
            with suppress(StoreError):
                readable.append(read_manifest(generation))
        return readable


def refuse_other_division(path: Path, partitions: int) -> None:
    """Raise StoreError for an index with one partition that several would replace, or reversed."""
    divided = is_partitioned(path)
    if existing_index(path) and divided != (partitions > 1):
        fact, other = ("partitions", "one") if divided else ("one partition", "several")
        raise StoreError(
            f"`{path}` has {fact}, and a build with {other} would replace it; build under another "
            "name, and delete this one or let an alias name the new one"
        )


def is_unreadable(path: Path) -> bool:
    """Return whether an index has generations, but none with a readable manifest."""
    return not existing_index(path) and bool(committed_generations(path))


def other_source(path: Path, collection: Collection) -> Manifest | None:
    """Return the manifest of an index that was built from another source, else None.

    Another source has another name, or the same name in another place, if both places are known.

    >>> other_source(Path("index/reports"), open_collection("reports.jsonl")) is None
    True
    """
    location = address(collection)
    for before in existing_index(path):
        moved = None not in (before.source_path, location) and before.source_path != location
        if before.counts.documents and (moved or before.source != collection.name):
            return before
    return None


def refuse_to_replace(path: Path, collection: Collection) -> None:
    """Raise StoreError if a build would lose documents or writes. Cost: some ms."""
    _refuse_other_source(path, collection)
    _refuse_to_drop_writes(path)


def _refuse_other_source(path: Path, collection: Collection) -> None:
    """Raise StoreError if documents of another or an unknown source would be lost."""
    before, coming = other_source(path, collection), address(collection) or collection.name
    if before is not None:
        raise StoreError(
            f"`{path}` has {counted(before.counts.documents, 'document')} of another "
            f"source, `{before.source_path or before.source}`, which `{coming}` "
            f"would replace; choose another name, apply only the differences with "
            f"`klsa-index sync {path.name} SOURCE`, or {_ALLOW}"
        )
    if is_unreadable(path):
        raise StoreError(
            f"`{path}` is an index that this version cannot read, and `{coming}` "
            f"would replace it; choose another name, or {_ALLOW}"
        )


def refuse_to_shrink(path: Path, documents: int, collection: Collection, *, replace: bool) -> None:
    """Refuse to replace an index by an empty one, or by less than half of its documents.

    Raise CollectionError if the collection is empty and the index is not; its own documents may all
    have been deleted. Raise StoreError if half are lost, unless `replace`, and the source has no
    place: all records passed in Python have the same name, which does not identify them.
    """
    if documents and (replace or address(collection) is not None):
        return
    most = max((before.counts.documents for before in existing_index(path)), default=0)
    if not documents and most and collection.format != "index":
        raise CollectionError(
            f"{collection.name} has no documents, and index `{path.name}` has "
            f"{most}, so it was not changed; check the source, or delete the index "
            "first"
        )
    if not replace and 2 * documents < most and address(collection) is None:
        raise StoreError(
            f"`{path}` has {counted(most, 'document')}, and only {documents:,} would "
            f"replace them; choose another name if they are others, or {_ALLOW}"
        )


def _refuse_to_drop_writes(path: Path) -> None:
    """Raise StoreError if an index was written to since its build: the source lacks these writes.

    An unreadable log may have writes. If CURRENT is unreadable, any generation may be in use.
    """
    if not is_index(path):
        return
    try:
        in_use = documents_of(current_build(path))
    except StoreError:
        folders = (path, *partition_folders(path))
        in_use = [generation for folder in folders for generation in committed_generations(folder)]
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
            f"`{path}` has writes after its build, {counted(puts, 'document')} added and "
            f"{deletes:,} deleted, that are not in its source; apply the changes of a "
            f"source with `klsa-index sync {path.name} SOURCE`, rebuild it from its stored "
            f"documents (klsa-index refit {path.name}), or {_ALLOW}"
        )


def address(collection: Collection) -> str | None:
    """Return the place of a collection; None if it has none, or its name is sufficient."""
    return collection.address if isinstance(collection, _LOCATED) else None


def reading_options(collection: Collection) -> dict[str, Any]:
    """Return the options with which a collection is read; none if it has none."""
    return dict(collection.options) if isinstance(collection, _LOCATED) else {}


def require_fields(
    collection: Collection, settings: Settings, fields: FieldsEntry, documents: int
) -> None:
    """Raise SettingsError if no document has a field that settings name.

    Fields of stored documents need only be searched before: their last value may be deleted.
    """
    if not documents:
        return
    metadata = sorted({*fields.columns, *fields.others})
    names = [TITLE, *metadata, TEXT]
    stored = collection if isinstance(collection, StoredCollection) else None
    if not fields.more:
        searched = settings.searched_fields
        present = {*names, *(stored.searched if stored else ())}
        missing = [
            name
            for name in searched.others
            if name not in present and not any(field.startswith(f"{name}.") for field in metadata)
        ]
        _refuse("search", str(searched), missing, names)
    if stored:
        return
    if not fields.more:
        if name := settings.language_field:
            _refuse("language_field", name, {name}.difference(metadata), metadata)
        for name in settings.html or ():
            _refuse("html", name, {name}.difference(names), names)
        for name, separator in settings.separators().items():
            _refuse("split", f"{name}={separator}", {name}.difference(metadata), metadata)
    for name in settings.declared():
        column = fields.columns.get(name)
        is_empty = fields.others.get(name) == NO_VALUE or (
            column is not None and not (column.values or column.type_mismatches)
        )
        _refuse("fields", name, [name] if is_empty else [], sorted({*metadata} - {name}))


def _refuse(setting: str, value: str, missing: Iterable[str], names: Sequence[str]) -> None:
    """Raise SettingsError for the first missing field, and name those that documents have."""
    for name in missing:
        present = ", ".join(f"`{name_}`" for name_ in names) or "none"
        raise SettingsError(
            f"{setting} = {value!r}: no document has a field `{name}`; the fields are: {present}",
            field=setting,
        )
