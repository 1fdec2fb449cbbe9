"""Repair: make again whatever can be made from the documents an index holds and its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from klsa_search.bars import told
from klsa_search.collection import Document
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build_generation
from klsa_search.indexing.deep import verify_deep
from klsa_search.indexing.stored import Stored
from klsa_search.progress import Progress
from klsa_search.search import Index
from klsa_search.store import Manifest, current_generation, read_manifest
from klsa_search.store.holdings import held_documents


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
    """Verify the index at `<home>/<name>` deeply, and build it anew from its documents if it fails.

    Needed are the manifest, the two files of documents and the log of writes, each compared with
    its sums; nothing that was acknowledged is left out, and nothing else comes in. Meanwhile nobody
    can write to it. The damaged generation stays as after any build. IndexDamaged names one of
    these files where it is damaged: then nothing is changed, and a backup or another generation is
    the way back. IndexNotFound; FormatUnsupported; StoreError while another builds or writes;
    SettingsError (memory). Cost: that of `verify_deep`, and of `build` where there is a fault.

    >>> repair("index/reports").fault is None
    True
    """
    path = Path(path)
    generation = current_generation(path)
    manifest = read_manifest(generation)
    try:
        verify_deep(path)
        return Repair(Index(generation), None)
    except IndexDamaged as damage:
        fault = damage.message
    with told(progress) as report:
        index = build_generation(
            path,
            Stored(manifest, manifest.counts.documents, partial(_read, generation, manifest)),
            manifest.checked_settings(),
            report,
            memory_budget(memory),
            replace=True,
        )
    return Repair(index, fault)


def _read(generation: Path, manifest: Manifest) -> Iterator[Document]:
    # By now nobody else builds or writes.
    if current_generation(generation.parent) != generation:
        raise StoreError(
            f"{generation.parent} was built again meanwhile: verify it, then repair it again if it "
            "needs that"
        )
    yield from held_documents(generation, manifest)
