"""Replay in a new build what was written to an index while it was built."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from klsa_search.core.config import Settings
from klsa_search.errors import StoreError
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.configuration import refuse_refit
from klsa_search.search.index import Index
from klsa_search.search.models import without_spaces
from klsa_search.storage.arrays import has_array
from klsa_search.storage.current import current_build
from klsa_search.storage.generations import writing
from klsa_search.storage.manifest import current_settings, read_manifest, replace_settings
from klsa_search.storage.partitions import documents_of, partition_of
from klsa_search.storage.write_log import LogPosition, WriteLog
from klsa_search.storage.write_log_writer import LogWriter

_BATCH = 1_000


class LogTail(NamedTuple):
    """The writes of a log after those that a new build has."""

    log: WriteLog
    last: LogPosition

    def end(self) -> LogPosition:
        """Return the end of the log; StoreError if writes of the build were undone."""
        if self.log.valid_until(self.last) < self.last.seq:
            raise StoreError(
                f"writes to `{self.log.path.parent}` were undone during the rebuild; start over"
            )
        return self.log.last()


@contextmanager
def replayed(
    before: Index, settings: Settings, replaced: Names[str], generation: Path
) -> Iterator[None]:
    """Replay later writes to a snapshot of an index, and changes of query settings, in a new build.

    settings    of the new build
    replaced    spaces whose vectors are by another model now: documents lose those they have
    generation  the new build, which may have partitions

    Writers are locked out until the context is left. Raise StoreError, with nothing changed, if
    replay is impossible: the index was rebuilt, documents of the new build were undone, its D is
    not sparse, or there are more documents than can be numbered; SettingsError if settings changed
    meanwhile do not go with its own.
    """
    path = before.path.parent
    with writing(path):
        refuse_rebuilt(before)
        tails = [LogTail(WriteLog(part.path), part.last_write) for part in before.partitions]
        now = current_settings(before.path, read_manifest(before.path))
        later = {name: value for name, value in now if value != getattr(before.settings, name)}
        chosen = Settings.checked({**settings.model_dump(), **later})
        refuse_refit(settings, chosen)
        replace_settings(generation, settings, chosen)
        targets = documents_of(generation)
        if len(targets) == 1:
            refuse_tails(path, tails, targets[0], len(before))
        replay(tails, targets, replaced)
        yield


def refuse_rebuilt(before: Index) -> None:
    """Raise StoreError unless the build of a snapshot is in use."""
    path = before.path.parent
    build = current_build(path)
    # Another build may have the name of one that was deleted.
    if build.name != before.generation or read_manifest(build).build != before.manifest.build:
        raise StoreError(
            f"`{path}` was rebuilt after generation {before.generation} was opened; open it again "
            "and start over"
        )


def refuse_tails(path: Path, tails: Sequence[LogTail], generation: Path, documents: int) -> None:
    """Raise StoreError if writes cannot be replayed in a generation with so many documents."""
    is_written = False
    puts = 0
    for tail in tails:
        end = tail.end()
        is_written |= end.seq > tail.last.seq
        puts += sum(write.document is not None for write in tail.log.rows(tail.last.seq, end))
    # A build stores these if its ranking reads eigenvectors.
    if is_written and has_array(generation, "lsi_eigenvectors"):
        raise StoreError(
            f"`{path}` was written to during a rebuild with settings that make it read-only; "
            "start over"
        )
    if puts and documents + puts > sparse_expansion.MAX_DOCUMENTS:
        raise StoreError(
            f"`{path}` was written to during the refit and has more documents "
            f"than a generation can number ({sparse_expansion.MAX_DOCUMENTS:,}); delete "
            "some, then start over"
        )


def replay(tails: Sequence[LogTail], targets: Sequence[Path], replaced: Names[str] = ()) -> None:
    """Append writes to the logs of new generations, by the IDs of their documents.

    tails     of the logs of all partitions; writers are locked out
    targets   generations of the new partitions, by number
    replaced  spaces whose vectors are by another model now: documents lose those they have
    """
    for number, target in enumerate(targets):
        writes = (
            write
            for tail in tails
            for write in tail.log.rows(tail.last.seq, tail.end())
            if len(targets) == 1 or partition_of(write.id, len(targets)) == number
        )
        with LogWriter(target) as log:
            for is_deletion, of_kind in groupby(writes, lambda write: write.document is None):
                while batch := list(islice(of_kind, _BATCH)):
                    documents = (write.document for write in batch if write.document is not None)
                    log.append(
                        [without_spaces(document, replaced) for document in documents],
                        [write.id for write in batch] if is_deletion else (),
                    )
