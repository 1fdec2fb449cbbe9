"""Build an index with many processes.

The result is byte for byte the generation that `klsa_search.indexing.build` writes, but without
passages: documents stay whole. Finished steps are in a work folder next to the generations, named
by source and settings, until the commit; a build that was killed is resumed from it.

Memory is estimated as in `indexing.sizes`: from the arrays that a step uses at the same time,
including mapped files. Only `_BASE` and the sizes of Python objects are measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.cluster.counting import ENTRIES, KEYS
from klsa_search.cluster.source import MOST, PART, PIECE, SharedSource, read_records
from klsa_search.cluster.steps import make_files
from klsa_search.cluster.work import StepResult, Work, Workers
from klsa_search.collection.opened_collection import warn_of_skipped
from klsa_search.collection.opening import Reading
from klsa_search.core import progress
from klsa_search.core.config import Settings
from klsa_search.core.keywords import IndexSettings
from klsa_search.core.progress import DOCUMENTS, Progress, open_progress
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.indexing.build import Built, write_generation
from klsa_search.indexing.checks import memory_budget, refuse_large_source, refuse_to_shrink
from klsa_search.indexing.reading import settled
from klsa_search.indexing.sizes import BASE, Shape, layout, memory_needed
from klsa_search.kernels.document_kernel import EXACT
from klsa_search.search.index import Index
from klsa_search.storage.columns.declared import DeclaredFields, fitting
from klsa_search.storage.directories import work_folder
from klsa_search.storage.names import index_path

_BASE = 140 * 2**20  # an interpreter with NumPy, SciPy and compiled code, most of it in files
_TERM = 200  # bytes of a term in a dictionary
_DOCUMENT = 400  # of a document that was read: its id, twice, and where its record is
_PAIR = 40  # of a key among those that are looked through
_WEIGHED = 110  # of an entry that becomes a feature
_SPLIT = 12  # of a posting in the making
_ENTRY = 20  # of an entry of a shard's features: number, column, and in the other precision
_FEATURE = 24  # of each feature: sums over all documents


def require_sparse(documents: int, settings: Settings) -> None:
    """Raise SettingsError if the expansion D of so many documents is not sparse."""
    kept = layout(documents, settings)
    if kept != "sparse":
        raise SettingsError(
            f"expansion: these settings need a {kept} expansion, which only a "
            "build on one machine supports; build without --cluster, or use the "
            "settings of the default preset",
            field="expansion",
        )


def refuse_passages(settings: Settings) -> None:
    """Raise SettingsError if documents are to be divided, which only one machine does."""
    if settings.passages not in ("auto", "off"):
        raise SettingsError(
            f"passages = {settings.passages!r}: a build with --cluster does not divide documents "
            "into passages; build without --cluster, or with passages = 'off'",
            field="passages",
        )


def worker_memory(shape: Shape, settings: Settings, shards: int) -> dict[str, int]:
    """Return the peak bytes of a worker in each phase; SettingsError if D is not sparse."""
    require_sparse(shape.documents, settings)
    N, V, features = shape.documents, shape.terms, shape.terms + shape.pairs
    piece = min(1.0, max(PIECE / max(shape.stored, 1), 1 / MOST))  # of all documents
    shard = max(1 / shards, piece)
    part = min(1.0, max(PART / max(shape.stored, 1), 1 / MOST))
    counted = 16 * shape.words * piece + 12 * shape.tokens * piece + 32 * V
    texts = 300 * shape.texts
    weighing = max(
        _PAIR * min(KEYS, shape.tokens),
        _WEIGHED * min(ENTRIES, shape.features) + 40 * shape.tokens * piece + 24 * V,
        _SPLIT * shape.non_zeros * shard + 24 * N,
    )
    needed = {
        progress.DOCUMENTS: max(_DOCUMENT * N * part, _TERM * V * piece**0.5 + texts),
        progress.COUNTS: counted,
        progress.POSTINGS: weighing,
    }
    # Of the kernel a worker has the rows of a shard, and of its vectors some columns at a time.
    alone = memory_needed(shape, settings, memory=2**63, processes=1)
    needed[progress.EIGENVECTORS] = (
        alone[progress.EIGENVECTORS] - BASE
        if N <= EXACT
        else _ENTRY * shape.features / shards + _FEATURE * features
    )
    for phase in (progress.NEIGHBOURS, progress.EXPANSION):
        needed[phase] = (alone[phase] - BASE) / shards
    return {phase: _BASE + int(size) for phase, size in needed.items()}


def build(
    source: str | os.PathLike[str] | SharedSource,
    *,
    name: str,
    workers: Workers,
    shards: int,
    home: str | Path = "index",
    preset: str = "default",
    reading: Reading | None = None,
    progress: Progress | bool | None = None,
    memory: str | int | None = None,
    replace: bool = False,
    **settings: Unpack[IndexSettings],
) -> Index:
    """Build an index by workers and open it. Arguments and errors as of `klsa_search.build`.

    source   a path that all workers see, a name, or an opened source, whose skipped records are
             not reported
    workers  processes that run the steps
    shards   number of ranges of documents; more of them need less memory for each worker
    reading  arguments of `klsa_search.open_collection`
    memory   limit of one worker; by default three quarters of the memory of this machine
    SettingsError for settings whose expansion is not sparse, and for a number of `passages`.
    """
    chosen = Settings.of_preset(preset, **with_trusted_tokenizer(settings))
    if shards < 1:
        raise SettingsError(f"shards = {shards} is less than 1", field="shards")
    require_sparse(0, chosen)
    refuse_passages(chosen)
    opened = source if isinstance(source, SharedSource) else SharedSource(source, reading or {})
    path, budget = index_path(Path(home), name).absolute(), memory_budget(memory)
    with open_progress(progress) as report:
        index = build_generation(
            path, opened, chosen, workers, shards, report, budget, replace=replace
        )
    if opened is not source:
        warn_of_skipped(opened.collection)
    return index


def build_generation(
    path: Path,
    source: SharedSource,
    chosen: Settings,
    workers: Workers,
    shards: int,
    report: Progress,
    budget: int,
    *,
    replace: bool,
) -> Index:
    """Build the next generation of the index at a path and open it. See `build`."""
    collection = source.collection

    def write(generation: Path) -> Built:
        needed = partial(worker_memory, settings=chosen, shards=shards)
        refuse_large_source(collection, chosen, budget, needed)
        identity = source.identity()
        folder = work_folder(path, _key(identity, chosen, shards))
        work = Work(folder, workers)
        report(DOCUMENTS, 0, None)
        try:
            declared = DeclaredFields.of(chosen)
            _, settings = settled(fitting(collection, declared), chosen)
            read = read_records(work, source, identity, settings)
        except CollectionError:
            shutil.rmtree(folder)  # a corrected source has another folder
            raise
        report(DOCUMENTS, read.documents, read.documents)
        require_sparse(read.documents, settings)
        refuse_to_shrink(path, read.documents, collection, replace=replace)
        files, built = make_files(work, read, settings, shards, report)
        for made, names in files:
            _place(made, names, generation)
        return built

    return write_generation(path, collection, write, report, replace=replace)


def _key(identity: str, settings: Settings, shards: int) -> str:
    values: Mapping[str, Any] = settings.model_dump(mode="json")
    text = json.dumps([identity, values, shards], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _place(made: StepResult, names: Sequence[str], generation: Path) -> None:
    """Link files into the folder of a generation, or copy them without hard links."""
    for name in names:
        try:
            os.link(made.path / name, generation / name)
        except OSError:
            shutil.copyfile(made.path / name, generation / name)
