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
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from klsa_search.analysis.tokenizers import trusting
from klsa_search.bars import reporting
from klsa_search.cluster.estimate import refuse_uncut, worker_memory
from klsa_search.cluster.making import make_files
from klsa_search.cluster.reading import read_records
from klsa_search.cluster.source import Source
from klsa_search.cluster.work import Made, Work, Workers
from klsa_search.collection import Reading
from klsa_search.collection.left_out import warn_of_left_out
from klsa_search.config import Settings
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import Built, write_generation
from klsa_search.indexing.check import refuse_large_source
from klsa_search.indexing.reading import settled
from klsa_search.indexing.replacing import (
    refuse_to_shrink,
)
from klsa_search.keywords import IndexSettings
from klsa_search.progress import DOCUMENTS, Progress
from klsa_search.search.index import Index
from klsa_search.store.fields.declared import Declared, fitting
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
    collection = source.collection

    def write(generation: Path) -> Built:
        needed = partial(worker_memory, settings=chosen, shards=shards)
        refuse_large_source(collection, chosen, budget, needed)
        identity = source.identity()
        folder = work_folder(path, _key(identity, chosen, shards))
        work = Work(folder, workers)
        report(DOCUMENTS, 0, None)
        try:
            declared = Declared(chosen.declared())
            _, settings = settled(fitting(collection, declared), chosen)
            read = read_records(work, source, identity, settings)
        except CollectionError:
            shutil.rmtree(folder)  # the source has to be another one
            raise
        report(DOCUMENTS, read.documents, read.documents)
        refuse_uncut(read.documents, settings)
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


def _place(made: Made, names: Sequence[str], generation: Path) -> None:
    """Have files in the folder of a generation, by a second name if the file system has links."""
    for name in names:
        try:
            os.link(made.path / name, generation / name)
        except OSError:
            shutil.copyfile(made.path / name, generation / name)
