"""A damaged file is refused with its name, or has no effect; nothing crashes."""

from __future__ import annotations

import pytest

from benchmarks.faults import damage
from benchmarks.faults.world import LAYOUTS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_file(folder, survived, layout):
    survived(damage.run(folder, times=1, layouts=(layout,), every=5))
