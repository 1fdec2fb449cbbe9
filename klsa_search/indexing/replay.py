"""Replay in a new build what was written to an index while it was built."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from klsa_search.collection.model import Document
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
from klsa_search.storage.write_log import LogPosition, Write, WriteLog
from klsa_search.storage.write_log_writer import LogWriter


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

    def batches(self) -> Iterator[tuple[str, Iterator[Write]]]:
        """Yield the time and the writes of each batch that is not undone, oldest first."""
        end = self.end()
        for batch in self.log.batches():
            if batch.undone is None and batch.last > self.last.seq:
                first = batch.last - batch.puts - batch.deletes
                yield batch.time, self.log.rows(first, LogPosition(batch.last, end.undos))


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
    # Generations of another build may have the names of those that were deleted.
    is_in_use = current_build(path).name == before.generation and all(
        read_manifest(folder) == manifest
        for folder, manifest in before.generations.items()
        if folder.is_dir()
    )
    if not is_in_use:
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
    What one call wrote stays one batch of its time, so that it is undone as before.
    """
    with ExitStack() as stack:
        logs = [stack.enter_context(LogWriter(target)) for target in targets]
        for time, writes in _calls(tails):
            puts: list[list[Document]] = [[] for _ in targets]
            deletes: list[list[str]] = [[] for _ in targets]
            for write in writes:
                number = partition_of(write.id, len(targets)) if len(targets) > 1 else 0
                if write.document is None:
                    deletes[number].append(write.id)
                else:
                    puts[number].append(without_spaces(write.document, replaced))
            for number, log in enumerate(logs):
                log.append(puts[number], deletes[number], time)


def _calls(tails: Sequence[LogTail]) -> Iterator[tuple[str, Iterator[Write]]]:
    """Yield the time and the writes of each call, which has a batch in some of the logs."""
    calls: list[tuple[str, dict[int, Iterator[Write]]]] = []
    batches = (
        ((time, number, writes) for time, writes in tail.batches())
        for number, tail in enumerate(tails)
    )
    for time, number, writes in merge(*batches, key=itemgetter(0)):
        # Two batches of one log are of two calls, also if a clock gave them one time.
        if not calls or calls[-1][0] != time or number in calls[-1][1]:
            calls.append((time, {}))
        calls[-1][1][number] = writes
    for time, of_logs in calls:
        yield time, chain.from_iterable(of_logs.values())
