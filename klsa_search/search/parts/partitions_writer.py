"""Writes batches to the partitions of an index, each document to that of its ID."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from klsa_search.collection.model import Document
from klsa_search.errors import KlsaError, StoreError
from klsa_search.search.parts.opened_partitions import OpenedSet, PartitionWriter
from klsa_search.search.parts.partitions_reader import PartitionsReader
from klsa_search.search.writing import (
    Changes,
    WriteResult,
    declared_of,
    of_spaces,
    patched_documents,
)
from klsa_search.storage.generations import writing
from klsa_search.storage.partitions import partition_of

_Write = Callable[[PartitionWriter], WriteResult]


class PartitionsWriter:
    """Writes to the partitions of an index, with the methods of `GenerationWriter`.

    Writers of all processes take turns, by the lock of the index. A write is atomic in each
    partition. Documents are checked before the first is written. If a partition cannot be written,
    StoreError says how many were; writing the same again completes it, as it does after a process
    was killed.
    """

    def __init__(self, reader: PartitionsReader) -> None:
        self._reader = reader

    def check_room(self, puts: int) -> None:
        """Do nothing: each partition checks its documents before the first is written."""

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each."""

        def divided(now: OpenedSet) -> dict[int, _Write]:
            count = len(now.writers)
            puts_of: dict[int, list[Document]] = {}
            deletes_of: dict[int, list[str]] = {}
            for put in puts:
                puts_of.setdefault(partition_of(put.id, count), []).append(put)
            for id_ in deletes:
                deletes_of.setdefault(partition_of(id_, count), []).append(id_)
            _ = list(of_spaces(puts, self._reader.dimensions))  # in all partitions alike
            for number, documents in puts_of.items():
                now.writers[number].check(documents)

            def write_of(number: int) -> _Write:
                batch = puts_of.get(number, ()), deletes_of.get(number, ())
                return lambda writer: writer.write(*batch)

            return {number: write_of(number) for number in sorted({*puts_of, *deletes_of})}

        return self._write(divided)

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents, atomically in each partition: see `GenerationWriter`."""

        def divided(now: OpenedSet) -> dict[int, _Write]:
            changes_of: dict[int, list[Changes]] = {}
            for change in changes:
                number = partition_of(change.id, len(now.writers))
                changes_of.setdefault(number, []).append(change)
            if len(changes_of) > 1:
                reader = self._reader
                declared = declared_of(reader.settings, reader.fields)
                for number, of_partition in changes_of.items():
                    patched = patched_documents(
                        of_partition, now.document, declared, reader.manifest.vectors
                    )
                    now.writers[number].check(patched)

            def write_of(number: int) -> _Write:
                return lambda writer: writer.patch(changes_of[number], embedded)

            return {number: write_of(number) for number in sorted(changes_of)}

        return self._write(divided)

    def _write(self, writes: Callable[[OpenedSet], dict[int, _Write]]) -> WriteResult:
        """Write to the partitions that a function returns for the present state, in order."""
        reader = self._reader
        with writing(reader.path.parent):
            reader.refresh()
            results: list[WriteResult] = []
            with reader.writing():
                now = reader.now()
                planned = writes(now)
                for number, write in planned.items():
                    try:
                        results.append(write(now.writers[number]))
                    except (KlsaError, OSError, MemoryError) as error:
                        if not results:
                            raise
                        raise StoreError(
                            f"wrote to {len(results)} of {len(planned)} partitions of index "
                            f"`{reader.name}`, not to `{now.partitions[number].name}`: {error}; "
                            "write the same again to complete it"
                        ) from error
            last = reader.last_write.seq
        return WriteResult(
            reader.generation,
            last,
            sum(result.written for result in results),
            sum(result.deleted for result in results),
            tuple(warning for result in results for warning in result.warnings),
        )
