"""Build: carry a collection through all floors by the hands of workers, into a new generation.

What comes out is the generation that `klsa_search.indexing.build` makes on one machine, file for
file the same bytes. What is done so far is next to the generations, in a folder named by the
source and the settings, until the index is sealed: a build that was killed goes on there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from klsa_search.analysis import trusting
from klsa_search.bars import reporting
from klsa_search.cluster.estimate import refuse_uncut, worker_memory
from klsa_search.cluster.making import Making, make_files
from klsa_search.cluster.reading import read_records
from klsa_search.cluster.source import Source
from klsa_search.cluster.work import Work, Workers
from klsa_search.collection import Reading
from klsa_search.collection.left_out import warn_of_left_out
from klsa_search.config import Settings
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import manifest_of
from klsa_search.indexing.check import refuse_large_source, refuse_overlap
from klsa_search.indexing.reading import settled
from klsa_search.indexing.replacing import (
    refuse_other_source,
    refuse_to_drop_writes,
    refuse_to_empty,
    refuse_to_shrink,
)
from klsa_search.keywords import IndexSettings
from klsa_search.progress import DOCUMENTS, FILES, Progress
from klsa_search.search import Index
from klsa_search.store.checked import note_checked
from klsa_search.store.fields.declared import Declared, fitting
from klsa_search.store.generations import new_generation, seal, sync_files
from klsa_search.store.manifest import Counts
from klsa_search.store.marking import work_folder
from klsa_search.store.names import index_path


def build(
    source: str | os.PathLike[str] | Source,
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
    workers  who does the work
    shards   S, ranges of documents that the features are cut into, for the memory of a worker
    reading  how the source is read, as arguments of `klsa_search.open_collection`
    memory   that one worker may use; three quarters of this machine's by default
    SettingsError for settings under which D is not cut.
    """
    chosen = Settings.of_preset(preset, **trusting(settings))
    if shards < 1:
        raise SettingsError(f"shards = {shards} is less than 1", field="shards")
    refuse_uncut(0, chosen)
    opened = source if isinstance(source, Source) else Source(source, reading or {})
    path, budget = index_path(Path(home), name).absolute(), memory_budget(memory)
    with reporting(progress) as report:
        index = build_generation(
            path, opened, chosen, workers, shards, report, budget, replace=replace
        )
    if opened is not source:
        warn_of_left_out(opened.collection)
    return index


def build_generation(
    path: Path,
    source: Source,
    chosen: Settings,
    workers: Workers,
    shards: int,
    report: Progress,
    budget: int,
    *,
    replace: bool,
) -> Index:
    """Build the next generation of the index at a path and open it. See `build`."""
    started = time.monotonic()
    collection = source.collection
    refuse_overlap(path, collection)
    with new_generation(path) as generation:
        if not replace:
            refuse_other_source(path, collection)
            refuse_to_drop_writes(path)
        needed = partial(worker_memory, settings=chosen, shards=shards)
        refuse_large_source(collection, chosen, budget, needed)
        identity = source.identity()
        folder = work_folder(path, _key(identity, chosen, shards))
        work = Work(folder, workers)
        report(DOCUMENTS, 0, None)
        try:
            declared = Declared(chosen.declared())
            _, chosen = settled(fitting(collection, declared), chosen)
            read = read_records(work, source, identity, chosen)
        except CollectionError:
            shutil.rmtree(folder)  # the source has to be another one
            raise
        report(DOCUMENTS, read.documents, read.documents)
        refuse_uncut(read.documents, chosen)
        refuse_to_empty(path, read.documents, collection)
        if not replace:
            refuse_to_shrink(path, read.documents, collection)
        made = make_files(work, read, chosen, shards, report)
        report(FILES, 0, None)
        _place(made, generation)
        manifest = manifest_of(
            collection,
            generation,
            chosen,
            Counts(skipped=collection.problems.count, **made.counts),
            {"bm25": made.spectrum},
            digest=made.digest,
            fields=made.fields,
            started=started,
        )
        sync_files(generation)
        seal(generation, manifest)
        note_checked(generation, manifest)
    return Index(generation)


def _key(identity: str, settings: Settings, shards: int) -> str:
    values: Mapping[str, Any] = settings.model_dump(mode="json")
    text = json.dumps([identity, values, shards], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _place(made: Making, generation: Path) -> None:
    """Have the files of a generation in its folder, by a second name where there can be one."""
    for folder, names in made.files:
        for name in names:
            try:
                os.link(folder.path / name, generation / name)
            except OSError:  # as on file systems without links
                shutil.copyfile(folder.path / name, generation / name)
