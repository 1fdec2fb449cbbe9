"""The part of an index in partitions that writes documents, settings and judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from klsa_search.collection.model import Document
from klsa_search.core.keywords import IndexSettings
from klsa_search.errors import KlsaError, StoreError
from klsa_search.kernels.vector_space import VectorSpaces
from klsa_search.search.opened_partitions import OpenedPartitions, OpenedSet
from klsa_search.search.partition import Partition
from klsa_search.search.query_settings import change_settings
from klsa_search.search.writing import WriteResult
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.generations import writing
from klsa_search.storage.log import checked_id
from klsa_search.storage.partitions import partition_of

_Write = Callable[[Partition], WriteResult]


class WritablePartitions(OpenedPartitions):
    """An open index in partitions that adds, deletes and patches documents.

    Writers of all processes take turns, by the lock of the index. A write is divided by the IDs of
    its documents, and atomic in each partition.
    """

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each.

        Durable and searchable on return. Documents are checked before the first is written. If a
        partition cannot be written, StoreError says how many were; writing the same again completes
        it, as it does after a process was killed.
        """
        checked = [checked_id(id_) for id_ in deletes]

        def divided(now: OpenedSet) -> list[tuple[Partition, _Write]]:
            count = len(now.partitions)
            own_puts: dict[int, list[Document]] = {}
            own_deletes: dict[int, list[str]] = {}
            for put in puts:
                own_puts.setdefault(partition_of(put.id, count), []).append(put)
            for id_ in checked:
                own_deletes.setdefault(partition_of(id_, count), []).append(id_)
            for number, own in own_puts.items():
                now.partitions[number].refuse(own)

            def write_of(number: int) -> _Write:
                batch = own_puts.get(number, ()), own_deletes.get(number, ())
                return lambda partition: partition.write(*batch)

            numbers = sorted({*own_puts, *own_deletes})
            return [(now.partitions[number], write_of(number)) for number in numbers]

        return self._written(divided)

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002 - as in `Index`
        """Merge changes into one document: see `Index.patch`."""

        def of_one(now: OpenedSet) -> list[tuple[Partition, _Write]]:
            partition = now.partitions[partition_of(id, len(now.partitions))]
            return [(partition, lambda own: own.patch(id, changes))]

        return self._written(of_one)

    def _written(
        self, writes: Callable[[OpenedSet], list[tuple[Partition, _Write]]]
    ) -> WriteResult:
        """Write to the partitions that a function returns for the present state, in order."""
        self._check_writable()
        with writing(self._path):
            self.refresh()
            results: list[WriteResult] = []
            with self._writing:
                try:
                    planned = writes(self._now())
                    for partition, write in planned:
                        results.append(write(partition))
                except (KlsaError, OSError, MemoryError) as error:
                    if not results:
                        raise
                    raise StoreError(
                        f"wrote to {len(results)} of {len(planned)} partitions of index "
                        f"`{self.name}`, not to `{partition.name}`: {error}; write the same again "
                        "to complete it"
                    ) from error
                finally:
                    self._publish()
            last = self.last_write.seq
        return WriteResult(
            self.generation,
            last,
            sum(each.written for each in results),
            sum(each.deleted for each in results),
            tuple(warning for each in results for warning in each.warnings),
        )

    def _publish(self) -> None:
        """Make what was written visible, in all partitions at once."""
        with self._lock:
            now = self._now()
            self._state = self._weighed(now.files, now.partitions)

    def update_settings(self, **changes: Unpack[IndexSettings]) -> None:
        """Change settings that only queries use, in all partitions at once: see `Index`."""
        self._check_writable()
        change_settings(self._path, changes)
        self.refresh()

    def judge(self, query: str, id: str, grade: int) -> None:  # noqa: A002 - as in `Index`
        """Judge how relevant a document is to a query: see `Index.judge`."""
        self._of(id).doc_ids([id])
        self.judgements.put(query, id, grade)

    def _readers(self) -> list[DocumentReader]:
        return [state.documents for state in self._now().states]

    def _spaces(self) -> VectorSpaces:
        spaces = [state.snapshot.vectors for state in self._now().states]
        return {name: space for each in spaces for name, space in each.items()}

    def _check_room(self, puts: int) -> None:
        """Do nothing: each partition checks its own share when it is written."""
