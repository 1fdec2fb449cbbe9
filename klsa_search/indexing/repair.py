"""Repair: rebuild damaged parts of an index from its documents and its log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from klsa_search.bars import reporting
from klsa_search.collection import Document
from klsa_search.config import fingerprint_of_settings
from klsa_search.errors import IndexDamaged, SettingsError, StoreError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build_generation, fingerprint_of
from klsa_search.indexing.deep import verify_deep
from klsa_search.indexing.reading import content_of
from klsa_search.indexing.stored import Stored
from klsa_search.progress import Progress
from klsa_search.search.index import Index
from klsa_search.store.current import current_generation, last_resort
from klsa_search.store.export import live_documents
from klsa_search.store.files import read_regular
from klsa_search.store.log import WriteLog
from klsa_search.store.manifest import Manifest, read_manifest, settings_as_built
from klsa_search.store.names import MANIFEST
from klsa_search.store.recovery import RecoveredRecords, repair_current, repair_manifest
from klsa_search.store.verifying import verify_shared


@dataclass(frozen=True)
class Repair:
    """Result of a repair.

    index  the index after the repair, open
    fault  description of the damage; None if there was none, and nothing was changed

    >>> repair("index/reports")
    Repair(index=<Index reports generation 000001: 6 documents>, fault=None)
    """

    index: Index
    fault: str | None


def repair(
    path: str | Path, *, progress: Progress | bool | None = None, memory: int | str | None = None
) -> Repair:
    """Verify the index at `<home>/<name>` with `verify_deep`, and repair it, including all writes.

    CURRENT is rewritten if it does not match the generations, and the manifest if one of its bytes
    was changed, which its checksum in CURRENT proves. For other damage, a new generation is built
    from the documents and the log of the damaged one, which is kept; writes are blocked meanwhile.
    Only verified data is used: documents by their checksums in the manifest, a damaged manifest by
    the fingerprint of settings and documents, writes by their own checksums. Headers of array files
    and offsets of documents are recovered. IndexDamaged if something cannot be verified: then
    nothing else is changed, and the message names the file and the next step. IndexNotFound;
    FormatUnsupported; StoreError during another build or write; SettingsError (memory). Cost: that
    of `verify_deep`, and of `build` after damage.

    >>> repair("index/reports").fault is None
    True
    """
    path = Path(path)
    fault = repair_current(path)
    verify_shared(path)
    generation = current_generation(path)
    fault = repair_manifest(generation) or fault
    try:
        manifest = read_manifest(generation)
    except IndexDamaged as damage:
        fault = damage.message
        records = RecoveredRecords(generation)
        manifest = _proven_manifest(generation, records)
    else:
        try:
            verify_deep(path)
            return Repair(Index(generation), fault)
        except IndexDamaged as damage:
            fault = damage.message
        records = RecoveredRecords(generation)
        if changed := records.fault(manifest):
            raise IndexDamaged(
                f"{changed}, so a document may be altered, and nothing was built; "
                f"{last_resort(path)}"
            )
    with reporting(progress) as report:
        index = build_generation(
            path,
            Stored(manifest, records.size, partial(_read, generation, records)),
            manifest.checked_settings(),
            report,
            memory_budget(memory),
            replace=True,
        )
    return Repair(index, fault)


def _proven_manifest(generation: Path, records: RecoveredRecords) -> Manifest:
    """Read a manifest whose sum is wrong; IndexDamaged unless its fingerprint proves it.

    The fingerprint is of the settings and the documents: only facts about them, such as the
    name of their source, may have changed.
    """
    file, step = generation / MANIFEST, last_resort(generation.parent)
    try:
        manifest = Manifest.model_validate_json(read_regular(file))
        settings_as_built(manifest.settings)
    except (OSError, ValueError, SettingsError) as error:
        reason = str(error).splitlines()[0]
        raise IndexDamaged(f"cannot recover `{file}` ({reason}); {step}") from error
    digest = hashlib.sha256()
    for document in records.documents():
        digest.update(content_of(document))
    of_settings = fingerprint_of_settings(manifest.settings)  # as written, under former names too
    if fingerprint_of(of_settings, digest.hexdigest()) != manifest.fingerprint:
        raise IndexDamaged(
            f"cannot recover `{file}`: its fingerprint does not match its settings "
            f"and documents; {step}"
        )
    return manifest


def _read(generation: Path, records: RecoveredRecords) -> Iterator[Document]:
    # By now no other process builds or writes.
    if current_generation(generation.parent) != generation:
        raise StoreError(
            f"`{generation.parent}` was rebuilt meanwhile; verify it, then repair it if needed"
        )
    yield from live_documents(records, WriteLog(generation))
