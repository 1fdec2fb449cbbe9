"""Writes batches to the partitions of an index, each document to that of its ID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from klsa_search.collection.model import Document
from klsa_search.errors import KlsaError, StoreError
from klsa_search.search.parts.generation_writer import GenerationWriter
from klsa_search.search.parts.part_set import Part
from klsa_search.search.parts.partitions import OpenPartitions, PartitionGroup
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.writing import (
    Changes,
    WriteResult,
    of_spaces,
)
from klsa_search.storage.generations import writing
from klsa_search.storage.log_writer import write_time
from klsa_search.storage.partitions import partition_of

T = TypeVar("T")

_Writes = Mapping[int, Callable[[str], WriteResult]]
"""Writes by number of the partition, which take their time."""


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
        """Raise WritingRefused if a partition is full: which documents it gets is not known yet."""
        opened = self._opened
        for number in range(len(opened.parts.opened().parts)):
            opened.group.write(number, GenerationWriter.check_room, min(puts, 1))

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each."""

        def writes(parts: Sequence[Part], group: PartitionGroup) -> _Writes:
            puts_of = _divided(puts, lambda put: put.id, len(parts))
            deletes_of = _divided(deletes, str, len(parts))
            _ = list(of_spaces(puts, parts[0].read(dimensions)))  # in all partitions alike
            for number, documents in puts_of.items():
                group.write(number, GenerationWriter.check, documents)
            return {
                number: partial(
                    group.write,
                    number,
                    GenerationWriter.write,
                    puts_of.get(number, ()),
                    deletes_of.get(number, ()),
                )
                for number in sorted({*puts_of, *deletes_of})
            }

        return self._write(writes)

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents, atomically in each partition: see `GenerationWriter`."""

        def writes(parts: Sequence[Part], group: PartitionGroup) -> _Writes:
            changes_of = _divided(changes, lambda change: change.id, len(parts))
            if len(changes_of) > 1:
                for number, of_partition in changes_of.items():
                    group.write(number, GenerationWriter.check_patch, of_partition)
            return {
                number: partial(
                    group.write, number, GenerationWriter.patch, changes_of[number], embedded
                )
                for number in sorted(changes_of)
            }

        return self._write(writes)

    def _write(self, writes: Callable[[Sequence[Part], PartitionGroup], _Writes]) -> WriteResult:
        """Write to partitions, in order, what a function returns for the present state."""
        opened = self._opened
        path = opened.parts.facts.path.parent
        with writing(path):
            opened.refresh()
            results: list[WriteResult] = []
            with opened.writing():
                planned, time = writes(opened.parts.parts, opened.group), write_time()
                for number, write in planned.items():
                    try:
                        results.append(write(time))
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
