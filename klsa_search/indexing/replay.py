"""Replay in new partitions, or a new generation, what was written while they were built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from klsa_search.collection.model import Document
from klsa_search.core.config import Settings
from klsa_search.errors import StoreError
from klsa_search.search.embedders import without_spaces
from klsa_search.search.query_settings import refuse_refit
from klsa_search.storage.log import LogPosition, Write, WriteLog
from klsa_search.storage.log_writer import LogWriter
from klsa_search.storage.partitions import partition_of

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


def replay(
    tails: Sequence[LogTail], targets: Sequence[Path], replaced: Collection[str] = ()
) -> None:
    """Append writes to the logs of new generations, by the IDs of their documents.

    tails     of the logs of all partitions; writers are locked out
    targets   generations of the new partitions, by number
    replaced  spaces whose vectors are by another model now: documents lose those they have
    """
    with ExitStack() as logs:
        writers = [_BatchWriter(logs.enter_context(LogWriter(target))) for target in targets]
        for tail in tails:
            for write in tail.log.rows(tail.last.seq, tail.end()):
                target = partition_of(write.id, len(writers)) if len(writers) > 1 else 0
                document = write.document
                if document is not None:
                    document = without_spaces(document, replaced)
                writers[target].append(write._replace(document=document))
        for writer in writers:
            writer.flush()


class _BatchWriter:
    """Appends writes to a log in batches."""

    def __init__(self, log: LogWriter) -> None:
        self._log = log
        self._puts: list[Document] = []
        self._deletes: list[str] = []

    def append(self, write: Write) -> None:
        """Add the next write. In a batch, deletions come first."""
        is_full = len(self._puts) + len(self._deletes) == _BATCH
        if is_full or (self._puts and write.document is None):
            self.flush()
        if write.document is None:
            self._deletes.append(write.id)
        else:
            self._puts.append(write.document)

    def flush(self) -> None:
        """Write what is left."""
        if self._puts or self._deletes:
            self._log.append(self._puts, self._deletes)
            self._puts, self._deletes = [], []


def replayed_settings(before: Settings, now: Settings, settings: Settings) -> Settings:
    """Return the settings of a new build with the query settings that were changed meanwhile.

    before    settings of the index when the build began
    now       its present settings
    settings  of the new build
    Raise SettingsError if they do not go together.
    """
    later = {name: value for name, value in now if value != getattr(before, name)}
    chosen = Settings.checked({**settings.model_dump(), **later})
    refuse_refit(settings, chosen)
    return chosen
