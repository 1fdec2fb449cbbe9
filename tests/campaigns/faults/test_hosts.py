"""After a kill of a process of a cluster, answers are whole or name it, and writes are kept."""

from __future__ import annotations

import pytest

from benchmarks.faults import host_kills

pytest.importorskip("ray", reason="ray is not installed: pip install 'klsa-search[cluster]'")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_host_killed_in_each_step(folder, survived, replicas):
    survived(host_kills.run(folder, times=1, replicas=[replicas]))
