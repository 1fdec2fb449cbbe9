"""An index in partitions that other processes serve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from klsa_search.cluster.calls import Replicas
from klsa_search.cluster.remote import RemotePartition, RemotePartitions, RemoteSearches
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.partition import Partition
from klsa_search.search.partitioned_index import PartitionedIndex
from klsa_search.search.partitioned_search import PartitionSearches
from klsa_search.search.partitions_reader import OpenedSet, PartitionFiles, PartitionsReader
from klsa_search.storage.partitions import generations_of


class Cluster(Protocol):
    """Starts processes that serve partitions."""

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Replicas:
        """Return the replicas of partitions when they are ready; they end with the object."""


class ClusterPartitions:
    """Opens the partitions of an index in other processes; see `PartitionsOpener`.

    A `RemotePartition` has the methods of a `Partition`, but not its base, which opens files.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def open(self, path: Path, files: PartitionFiles) -> OpenedSet:
        """Start the processes of all partitions of the index in a folder."""
        generations = generations_of(path, files.found)
        tokenizer = files.found.manifest.checked_settings().tokenizer
        partitions = RemotePartitions(self._cluster.replicas(generations, tokenizer))
        opened = [
            RemotePartition(partitions, number, generation)
            for number, generation in enumerate(generations)
        ]
        return self.weighed(files, tuple(cast("list[Partition]", opened)))

    def weighed(self, files: PartitionFiles, partitions: tuple[Partition, ...]) -> OpenedSet:
        """Return the present state, with the statistics of all documents."""
        remote = cast("tuple[RemotePartition, ...]", partitions)
        version = remote[0].partitions.weigh(files.found, files.synonyms, files.settings)
        views = [partition.in_version(version) for partition in remote]
        return OpenedSet(partitions, tuple(cast("list[Partition]", views)), files)

    def searches(self, opened: OpenedSet) -> PartitionSearches:
        """Return a new search in one state of all partitions."""
        view = cast("RemotePartition", opened.views[0])
        assert view.version is not None
        return RemoteSearches(view.partitions, view.version)


class ClusterIndex(PartitionedIndex):
    """A `PartitionedIndex` whose partitions are open in other processes.

    Results are the same. This process reads only the file that names the partitions, merges, and
    passes documents on; the processes of the partitions write their logs.
    """

    @classmethod
    def open(cls, path: Path, cluster: Cluster, *, models: Models = NO_MODELS) -> ClusterIndex:
        """Open the index in a folder when its processes are ready."""
        return cls(PartitionsReader(path, ClusterPartitions(cluster)), models)

    def warm_up(self) -> None:
        """Search once; the other processes are ready when the index is open."""
        self.search("", 1)
