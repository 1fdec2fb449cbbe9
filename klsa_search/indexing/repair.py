"""Repair: make again whatever can be made from the documents an index holds and its log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from klsa_search.bars import told
from klsa_search.collection import Document
from klsa_search.config import fingerprint_of_settings
from klsa_search.errors import IndexDamaged, SettingsError, StoreError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build_generation, fingerprint_of
from klsa_search.indexing.deep import verify_deep
from klsa_search.indexing.reading import content_of
from klsa_search.indexing.stored import Stored
from klsa_search.progress import Progress
from klsa_search.search import Index
from klsa_search.store import Manifest, current_generation, read_manifest
from klsa_search.store.current import last_resort
from klsa_search.store.files import read_regular
from klsa_search.store.holdings import built_documents, held_documents
from klsa_search.store.manifest import settings_as_built
from klsa_search.store.names import MANIFEST
from klsa_search.store.recovery import RecoveredRecords, repair_current, repair_manifest
from klsa_search.store.verifying import verify_shared


@dataclass(frozen=True)
class Repair:
    """What was done.

    index  as it is now, open
    fault  what was found, in a sentence; None where nothing was, and nothing was done

    >>> repair("index/reports")
    Repair(index=<Index reports generation 000001: 6 documents>, fault=None)
    """

    index: Index
    fault: str | None


def repair(
    path: str | Path, *, progress: Progress | bool | None = None, memory: int | str | None = None
) -> Repair:
    """Verify the index at `<home>/<name>` deeply, and mend it if it fails, with all its writes.

    CURRENT is written again if it does not agree with the generations, and the manifest if one of
    its bytes was changed, which its sum in CURRENT proves. If anything else fails, a
    new generation is built from the documents and the log of the damaged one, which stays as after
    any build; nobody can write meanwhile. What is used is proven: documents by the sums that the
    manifest has of them, a damaged manifest by the fingerprint of settings and documents, writes by
    their own sums. Headers of array files, and where documents begin, are recovered. IndexDamaged
    where something cannot be proven: then nothing else is changed, and the message names the file
    and what is left to do. IndexNotFound; FormatUnsupported; StoreError while another builds or
    writes; SettingsError (memory). Cost: that of `verify_deep`, and of `build` after damage.

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
                f"{changed}, so a document may be altered and nothing is built from it: "
                f"{last_resort(path)}"
            )
    with told(progress) as report:
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

    The fingerprint is of the settings and the documents: only what is told about them, such as the
    name of their source, may have changed.
    """
    file, step = generation / MANIFEST, last_resort(generation.parent)
    try:
        manifest = Manifest.model_validate_json(read_regular(file))
        settings_as_built(manifest.settings)
    except (OSError, ValueError, SettingsError) as error:
        reason = str(error).splitlines()[0]
        raise IndexDamaged(f"{file} cannot be recovered ({reason}): {step}") from error
    digest = hashlib.sha256()
    for document in built_documents(records):
        digest.update(content_of(document))
    of_settings = fingerprint_of_settings(manifest.settings)  # as written, under former names too
    if fingerprint_of(of_settings, digest.hexdigest()) != manifest.fingerprint:
        raise IndexDamaged(
            f"{file} cannot be recovered (its fingerprint is not that of its settings and "
            f"documents): {step}"
        )
    return manifest


def _read(generation: Path, records: RecoveredRecords) -> Iterator[Document]:
    # By now nobody else builds or writes.
    if current_generation(generation.parent) != generation:
        raise StoreError(
            f"{generation.parent} was built again meanwhile: verify it, then repair it again if it "
            "needs that"
        )
    yield from held_documents(generation, records)
