"""Full disks and unwritable folders raise a clear error and lose nothing."""

import pytest

from benchmarks.faults import disk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("change", disk.CHANGES, ids=lambda change: change.name)
def test_a_disk_that_is_full_and_what_is_not_allowed(folder, survived, change):
    survived(disk.run(folder, changes=(change,), step=10))
