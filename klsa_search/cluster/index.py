"""An index in partitions that other processes serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from klsa_search.cluster.calls import Replicas
from klsa_search.cluster.remote import (
    RemotePartition,
    RemotePartitions,
    RemoteSearches,
    Version,
)
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.parts.generation_reader import GenerationReader
from klsa_search.search.parts.opened_partitions import OpenedSet, PartitionFiles
from klsa_search.search.parts.part_search import PartSearches
from klsa_search.search.parts.partitions_reader import PartitionsReader
from klsa_search.search.parts.partitions_writer import PartitionsWriter
from klsa_search.storage.partitions import generations_of


class Cluster(Protocol):
    """Starts processes that serve partitions."""

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Replicas:
        """Return the replicas of partitions when they are ready; they end with the object."""


class ClusterPartitions:
    """Opens the partitions of an index in other processes; see `PartitionsOpener`.

    A `RemotePartition` has the methods of a `GenerationReader` and its writer, but opens no files.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def open(self, files: PartitionFiles) -> OpenedSet:
        """Start the processes of all partitions of the index in a folder."""
        generations = generations_of(files.path, files.partition_set)
        tokenizer = files.partition_set.manifest.checked_settings().tokenizer
        partitions = RemotePartitions(self._cluster.replicas(generations, tokenizer))
        opened = [
            RemotePartition(partitions, number, generation)
            for number, generation in enumerate(generations)
        ]
        return self.weighed(files, tuple(cast("list[GenerationReader]", opened)))

    def weighed(self, files: PartitionFiles, partitions: tuple[GenerationReader, ...]) -> OpenedSet:
        """Return the present state, with the statistics of all documents."""
        remote = cast("tuple[RemotePartition, ...]", partitions)
        version = remote[0].partitions.weigh(files)
        return OpenedSet(files, partitions, remote, _views(remote, version))

    def restricted(self, opened: OpenedSet, filter_: FilterLike) -> OpenedSet:
        """Return one state of all partitions with the documents that match a filter."""
        views = cast("tuple[RemotePartition, ...]", opened.views)
        assert views[0].version is not None
        version = views[0].partitions.restricted(views[0].version, filter_)
        return replace(opened, views=_views(views, version))

    def searches(self, opened: OpenedSet) -> PartSearches:
        """Return a new search in one state of all partitions."""
        view = cast("RemotePartition", opened.views[0])
        assert view.version is not None
        return RemoteSearches(view.partitions, view.version)


def _views(partitions: Sequence[RemotePartition], version: Version) -> tuple[GenerationReader, ...]:
    """Return read-only views of partitions in a version."""
    views = [partition.in_version(version) for partition in partitions]
    return tuple(cast("list[GenerationReader]", views))


def open_cluster_index(path: Path, cluster: Cluster, models: Models = NO_MODELS) -> Index:
    """Open the index in a folder, with its partitions in other processes, when these are ready.

    Results are the same. This process reads only the file that names the partitions, merges, and
    passes documents on; the processes of the partitions write their logs.
    """
    reader = PartitionsReader(path, ClusterPartitions(cluster))
    return Index(reader, PartitionsWriter(reader), models)
