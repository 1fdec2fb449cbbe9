"""Writes batches to the partitions of an index, each document to that of its ID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from klsa_search.collection.model import Document
from klsa_search.errors import KlsaError, StoreError
from klsa_search.search.parts.partitions import OpenPartitions, PartitionWriter
from klsa_search.search.parts.reading import dimensions, document
from klsa_search.search.writing import (
    Changes,
    WriteResult,
    declared_of,
    of_spaces,
    patched_documents,
)
from klsa_search.storage.generations import writing
from klsa_search.storage.log_writer import write_time
from klsa_search.storage.partitions import partition_of

T = TypeVar("T")

_Writes = Mapping[int, Callable[[], WriteResult]]
"""Writes by number of the partition."""


class PartitionsWriter:
    """Writes to the partitions of an index, with the methods of `GenerationWriter`.

    Writers of all processes take turns, by the lock of the index. A write is atomic in each
    partition. Documents are checked before the first is written. If a partition cannot be written,
    StoreError says how many were; writing the same again completes it, as it does after a process
    was killed.
    """

    def __init__(self, opened: OpenPartitions) -> None:
        self._opened = opened

    def check_room(self, puts: int) -> None:
        """Do nothing: each partition checks its documents before the first is written."""

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each."""

        def writes(writers: Sequence[PartitionWriter]) -> _Writes:
            puts_of = _divided(puts, lambda put: put.id, len(writers))
            deletes_of = _divided(deletes, str, len(writers))
            first = self._opened.parts.parts[0]
            _ = list(of_spaces(puts, first.read(dimensions)))  # in all partitions alike
            for number, documents in puts_of.items():
                writers[number].check(documents)
            time = write_time()
            return {
                number: partial(
                    writers[number].write, puts_of.get(number, ()), deletes_of.get(number, ()), time
                )
                for number in sorted({*puts_of, *deletes_of})
            }

        return self._write(writes)

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents, atomically in each partition: see `GenerationWriter`."""

        def writes(writers: Sequence[PartitionWriter]) -> _Writes:
            changes_of = _divided(changes, lambda change: change.id, len(writers))
            if len(changes_of) > 1:
                facts, parts = self._opened.parts.facts, self._opened.parts.parts
                declared = declared_of(facts.configuration.settings, parts[0].fields)

                def stored(id_: str) -> Document:
                    return parts[partition_of(id_, len(parts))].read(document, id_)

                for number, of_partition in changes_of.items():
                    writers[number].check(
                        patched_documents(of_partition, stored, declared, facts.manifest.vectors)
                    )
            time = write_time()
            return {
                number: partial(writers[number].patch, changes_of[number], embedded, time)
                for number in sorted(changes_of)
            }

        return self._write(writes)

    def _write(self, writes: Callable[[Sequence[PartitionWriter]], _Writes]) -> WriteResult:
        """Write to partitions, in order, what a function returns for the present state."""
        opened = self._opened
        path = opened.parts.facts.path.parent
        with writing(path):
            opened.refresh()
            results: list[WriteResult] = []
            with opened.writing():
                planned = writes(opened.group.writers)
                for number, write in planned.items():
                    try:
                        results.append(write())
                    except (KlsaError, OSError, MemoryError) as error:
                        if not results:
                            raise
                        folder = opened.files.partition_set.folders[number]
                        raise StoreError(
                            f"wrote to {len(results)} of {len(planned)} partitions of index "
                            f"`{path.name}`, not to `{folder}`: {error}; write the same again to "
                            "complete it"
                        ) from error
            parts = opened.parts
            # PartitionMissing if a partition that was written does not answer.
            last = sum(part.info.last.seq for part in parts.parts)
        return WriteResult(
            parts.facts.generation,
            last,
            sum(result.written for result in results),
            sum(result.deleted for result in results),
            tuple(warning for result in results for warning in result.warnings),
        )


def _divided(items: Iterable[T], id_of: Callable[[T], str], count: int) -> dict[int, list[T]]:
    """Return items by the number of the partition of their ID, of so many partitions."""
    divided: dict[int, list[T]] = {}
    for item in items:
        divided.setdefault(partition_of(id_of(item), count), []).append(item)
    return divided
