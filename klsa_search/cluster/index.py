"""An index in partitions that other processes serve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from klsa_search.cluster.calls import Replicas
from klsa_search.cluster.remote import RemotePartitions
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.parts.partitions import OpenPartitions, PartitionFiles
from klsa_search.search.parts.partitions_writer import PartitionsWriter
from klsa_search.search.parts.reader import Reader
from klsa_search.storage.partitions import generations_of


class Cluster(Protocol):
    """Starts processes that serve partitions."""

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Replicas:
        """Return the replicas of partitions when they are ready; they end with the object."""


def open_cluster_index(path: Path, cluster: Cluster, models: Models = NO_MODELS) -> Index:
    """Open the index in a folder, with its partitions in other processes, when these are ready.

    Results are the same. This process reads only the file that names the partitions, merges, and
    passes documents on; the processes of the partitions write their logs.
    """

    def opens(files: PartitionFiles) -> RemotePartitions:
        generations = generations_of(files.path, files.partition_set)
        tokenizer = files.partition_set.manifest.checked_settings().tokenizer
        return RemotePartitions(cluster.replicas(generations, tokenizer))

    opened = OpenPartitions(path, opens)
    return Index(Reader(opened, PartitionsWriter(opened)), models)
