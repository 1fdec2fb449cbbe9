"""An index in partitions survives a kill at a random moment of any change."""

import pytest

from benchmarks.faults import partition_kills

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("killed", ["builds", "writes", "refits", "splits", "settings"])
def test_an_index_in_partitions_killed_at_random(folder, survived, killed):
    none = dict.fromkeys(["builds", "writes", "refits", "splits", "settings"], 0)
    survived(partition_kills.run(folder, **{**none, killed: 3}))
