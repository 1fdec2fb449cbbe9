"""What opens the indexes of a service: this process alone, or a cluster in shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from klsa_search.errors import SettingsError
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index


def opening(
    cluster: str | None, shards: int, replicas: int, workers: int, tell: Callable[[str], None]
) -> Callable[[Path], Index]:
    """Join the cluster, if there is to be one, and return what opens an index.

    SettingsError, MissingExtra, ClusterFailed.
    """
    if cluster is None:
        return open_index
    if workers > 1:
        raise SettingsError(
            f"workers = {workers}: with --cluster, one process searches the shards; use more "
            "--shards or --replicas instead",
            field="workers",
        )
    from klsa_search.cluster.index import SpreadIndex
    from klsa_search.cluster.ray import RayFleet
    from klsa_search.store.current import current_generation

    tell(
        f"Joining the cluster `{cluster}`: {shards} shards of each index, {replicas} replicas of "
        "each shard"
    )
    fleet = RayFleet(cluster, shards, replicas)
    return lambda path: SpreadIndex(current_generation(path), fleet)
