"""An index in partitions that other processes serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from klsa_search.cluster.calls import Replicas
from klsa_search.cluster.remote import RemotePartition, RemotePartitions, RemoteSearches
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.opened_partitions import OpenedSet, PartitionFiles
from klsa_search.search.partition import Partition
from klsa_search.search.partitioned_index import PartitionedIndex
from klsa_search.search.partitioned_search import PartitionSearches
from klsa_search.storage.partitions import generations_of


class Cluster(Protocol):
    """Starts processes that serve partitions."""

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Replicas:
        """Return the replicas of partitions when they are ready; they end with the object."""


class ClusterIndex(PartitionedIndex):
    """A `PartitionedIndex` whose partitions are open in other processes.

    Results are the same. This process reads only the file that names the partitions, merges, and
    passes documents on; the processes of the partitions write their logs.
    """

    def __init__(self, path: Path, cluster: Cluster, *, models: Models = NO_MODELS) -> None:
        self._cluster = cluster
        super().__init__(path, models=models)

    def _open(self, files: PartitionFiles) -> OpenedSet:
        generations = generations_of(self._path, files.found)
        tokenizer = files.found.manifest.checked_settings().tokenizer
        partitions = RemotePartitions(self._cluster.replicas(generations, tokenizer))
        opened = [
            RemotePartition(partitions, number, generation)
            for number, generation in enumerate(generations)
        ]
        # They have the methods of a `Partition`, but not its base, which opens files.
        return self._weighed(files, tuple(cast("list[Partition]", opened)))

    @staticmethod
    def _weighed(files: PartitionFiles, partitions: tuple[Partition, ...]) -> OpenedSet:
        remote = cast("tuple[RemotePartition, ...]", partitions)
        found = files.found
        version = remote[0].partitions.weigh(found, files.synonyms, found.current_settings())
        views = [each.in_version(version) for each in remote]
        return OpenedSet(partitions, tuple(cast("list[Partition]", views)), files)

    def warm_up(self) -> None:
        """Search once; the other processes are ready when the index is open."""
        self.search("", 1)

    def _searches(self) -> PartitionSearches:
        view = cast("RemotePartition", self.partitions[0])
        assert view.version is not None
        return RemoteSearches(view.partitions, view.version)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        """Pickle as an index whose partitions are opened by the process itself."""
        return PartitionedIndex, (self._path.absolute(),)
