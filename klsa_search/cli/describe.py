"""Describe the contents and the build of an index, as rows of a table and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from klsa_search.cli.output import echo
from klsa_search.core.build_settings import MAX_FIELDS
from klsa_search.core.config import Settings
from klsa_search.core.wording import counted, in_bytes

if TYPE_CHECKING:
    from klsa_search.collection.model import Problems
    from klsa_search.collection.opened_collection import OpenedCollection
    from klsa_search.storage.manifest import FieldsEntry, Manifest

_BATCHES = 5  # number of batches of writes to list
_FRACTION: Final = re.compile(r"\.\d+")  # fraction of the second of a time


def manifest_rows(name: str, manifest: Manifest) -> list[tuple[str, str]]:
    """Return the contents of an index as rows."""
    counts, built = manifest.counts, manifest.build
    spectra = [
        (
            f"spectrum ({label})",
            f"{s.dimensions} eigenvectors, {s.largest:.4g} to {s.smallest:.4g}, "
            f"{s.captured:.0%} of the trace, residual {s.residual:.1e}",
        )
        for label, s in manifest.spectra.items()
    ]
    return [
        ("index", name),
        ("source", manifest.source),
        ("documents", f"{counts.documents:,}"),
        *([("passages", f"{counts.passages:,}")] if counts.passages is not None else []),
        *_detected_rows(manifest),
        ("terms", f"{counts.terms:,}"),
        ("non-zeros", f"{counts.non_zeros:,}"),
        *_field_rows(manifest.fields, counts.documents, manifest.settings.get("units") or ()),
        *[
            (
                f"vectors ({space.name})",
                f"{space.vectors:,} of {counted(space.documents, 'document')}, "
                f"dimension {space.dimension}",
            )
            for space in manifest.vectors
        ],
        *spectra,
        ("size", in_bytes(manifest.bytes())),
        ("built", f"{built.created}, in {built.seconds:.1f} s"),
        ("peak memory", in_bytes(built.peak_memory)),
        ("fingerprint", manifest.fingerprint),
    ]


def _detected_rows(manifest: Manifest) -> list[tuple[str, str]]:
    """Return rows of what the build has detected in the texts, or was told of them."""
    from klsa_search.analysis.languages import AUTO

    rows, settings = [], manifest.settings
    if detected := manifest.detected:
        shares = "; ".join(f"{entry.language}, {entry.share:.0%} of the text" for entry in detected)
        rows.append(("language detected" if len(detected) == 1 else "languages detected", shares))
    elif settings["language"] == AUTO:
        rows.append(("language detected", "too little text to tell; read as English"))
    if html := settings.get("html"):
        rows.append(("HTML read as text", ", ".join(html)))
    if settings["identifiers"] == "parts":
        rows.append(("identifiers", "found by their parts, too"))
    return rows


def _field_rows(fields: FieldsEntry, documents: int, units: Sequence[str]) -> list[tuple[str, str]]:
    """Return rows of the filterable metadata fields, and of the others with the reason."""
    unit = {
        name: f" in {unit}"
        for name, _, unit in (declaration.rpartition("=") for declaration in units)
    }
    columns = [
        f"{name} ({column.type}{unit.get(name, '')}{', lists' * column.lists}"
        f"{', codes' * column.codes}, "
        + counted(documents - column.missing, "document")
        + (f", {counted(column.texts, 'text')}" if column.type == "keyword" else "")
        + (f", {column.type_mismatches:,} with another value)" if column.type_mismatches else ")")
        for name, column in fields.columns.items()
    ]
    unfilterable = [f"{name} ({reason})" for name, reason in fields.others.items()]
    if fields.more:
        unfilterable.append(
            f"fields beyond the first {MAX_FIELDS}: declare needed ones with --field"
        )
    facts = [("filterable", "; ".join(columns)), ("not filterable", "; ".join(unfilterable))]
    return [(title, text) for title, text in facts if text]


def settings_rows(settings: Settings) -> list[tuple[str, str]]:
    """Return the settings of an index as rows."""
    return [(name.replace("_", " "), _text(value)) for name, value in settings.model_dump().items()]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "auto"
    return (", ".join(value) or "detected") if isinstance(value, tuple) else str(value) or "none"


def manifest_json(name: str, manifest: Manifest) -> dict[str, Any]:
    """Return the manifest of an index for JSON, without its list of files."""
    entries = manifest.model_dump(exclude={"files"})
    entries["settings"] = manifest.checked_settings().model_dump(mode="json")
    return {"name": name, **entries, "bytes": manifest.bytes()}


def writes_json(generation: Path) -> dict[str, Any]:
    """Return the writes since the build of a generation, with their bytes, for JSON."""
    from klsa_search.storage.names import LOG_FILES
    from klsa_search.storage.write_log import WriteLog

    batches = WriteLog(generation).batches()
    applied = [batch for batch in batches if batch.undone is None]
    later_files = [file for file in generation.rglob("*") if LOG_FILES.fullmatch(file.name)]
    return {
        "batches": len(applied),
        "undone": len(batches) - len(applied),
        "puts": sum(batch.puts for batch in applied),
        "deletes": sum(batch.deletes for batch in applied),
        "last": [
            {"time": batch.time, "puts": batch.puts, "deletes": batch.deletes}
            for batch in reversed(applied[-_BATCHES:])
        ],
        "bytes": sum(file.stat().st_size for file in later_files),
    }


def writes_rows(writes: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what `writes_json` describes as rows; none without writes."""
    if not writes["batches"] and not writes["undone"]:
        return []
    line = (
        f"{writes['puts']:,} written, {writes['deletes']:,} deleted, "
        f"{counted(writes['batches'], 'batch', 'batches')}, {writes['undone']:,} undone, "
        f"{in_bytes(writes['bytes'])}"
    )
    undoes = [
        (
            f"rollback --writes {number}",
            f"{batch['puts']:,} written, {batch['deletes']:,} deleted at "
            + _FRACTION.sub("", batch["time"]),
        )
        for number, batch in enumerate(writes["last"], 1)
    ]
    return [("writes", line), *undoes]


def partitions_json(generations: Sequence[Path]) -> list[dict[str, Any]]:
    """Return documents, terms, bytes and writes of each partition, for JSON."""
    from klsa_search.storage.manifest import read_manifest

    partitions = []
    for generation in generations:
        manifest = read_manifest(generation)
        counts = {name: getattr(manifest.counts, name) for name in ("documents", "terms")}
        facts = {"name": generation.parent.name, "generation": generation.name, **counts}
        writes = writes_json(generation)
        partitions.append(facts | {"bytes": manifest.bytes(), "writes": writes})
    return partitions


def partitions_rows(partitions: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what `partitions_json` describes as rows: documents, size and writes of each."""
    rows = []
    for partition in partitions:
        line = f"{counted(partition['documents'], 'document')}, {in_bytes(partition['bytes'])}"
        writes = partition["writes"]
        if writes["batches"]:
            line += f"; {writes['puts']:,} written, {writes['deletes']:,} deleted since its build"
        rows.append((f"partition {partition['name']}", line))
    return rows


def drift_json(generations: Sequence[Path]) -> dict[str, Any] | None:
    """Return the drift of an index for JSON, or why it cannot be opened; None without later writes.

    generations  of the index, one for each partition
    Opens the index, which takes about 1 ms for each later document.
    """
    from klsa_search.errors import StoreError
    from klsa_search.storage.manifest import read_manifest
    from klsa_search.storage.write_log import WriteLog

    compacted = (read_manifest(generation).trained for generation in generations)
    written = (WriteLog(generation).last().seq for generation in generations)
    if not any(written) and all(trained is None for trained in compacted):
        return None
    from klsa_search.search.index import open_index
    from klsa_search.storage.partitions import is_partitioned

    try:
        path = generations[0].parent
        index = open_index(path.parent if is_partitioned(path.parent) else path)
    except StoreError as failure:
        return {"error": failure.message}
    with index:
        drift, documents = index.drift, len(index)
        mismatches = {name: count for name, count in index.type_mismatches.items() if count}
        built = index.manifest.fields.columns
        fields = {name: field.type for name, field in index.fields.items() if name not in built}
    return {
        "documents": documents,
        "added": drift.added,
        "deleted": drift.deleted,
        "added_share": drift.added_share(documents),
        "changed_share": drift.changed_share(documents),
        "unseen_share": drift.unseen_share,
        "fields": fields,
        "type_mismatches": mismatches,
    }


def drift_rows(drift: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return what `drift_json` describes as rows; none without writes."""
    if drift is None:
        return []
    if "error" in drift:
        return [("drift", f"unknown: {drift['error']}")]
    line = (
        f"{counted(drift['documents'], 'document')}, {drift['added_share']:.1%} of them added "
        f"after the build ({drift['unseen_share']:.1%} of their words are new), "
        f"{drift['deleted']:,} of the build deleted or replaced"
    )
    added = [f"{name} ({type_})" for name, type_ in drift["fields"].items()]
    mismatches = [f"{name} {count:,}" for name, count in drift["type_mismatches"].items()]
    return [
        ("drift", line),
        *([("added fields", ", ".join(added))] if added else []),
        *([("type mismatches", ", ".join(mismatches))] if mismatches else []),
    ]


def reading_json(collection: OpenedCollection) -> dict[str, Any]:
    """Return what the last pass over a source has skipped, not read, numbered and recognised."""
    return {
        "skipped": collection.problems.as_json(),
        "unread": collection.unread.as_json(),
        "numbered": collection.numbered,
        "notes": collection.notes,
    }


def write_reading(collection: OpenedCollection, *, unread: bool = True) -> None:
    """Write to stderr what the last pass over a source has recognised, numbered and skipped.

    unread  write which files were not read, too
    """
    from klsa_search.collection.opened_collection import remarks, unread_text

    if unread and collection.unread.count:
        echo(f"not read: {unread_text(collection.unread)}", err=True)
    for line in remarks(collection):
        echo(line, err=True)


def write_field_warnings(warnings: Problems) -> None:
    """Write to stderr the number of values of the wrong type by field, and the first of them."""
    if warnings.count:
        counted = (f"{name} {count:,}" for name, count in sorted(warnings.kinds.items()))
        echo(
            f"values of the wrong type, which count as missing: {', '.join(counted)}; the first:",
            err=True,
        )
    for reason in warnings.reasons:
        echo(f"  {reason}", err=True)
