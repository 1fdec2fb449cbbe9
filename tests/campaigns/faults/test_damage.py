"""A damaged file is refused with its name, or has no effect; nothing crashes."""

import pytest

from benchmarks.faults import damage
from benchmarks.faults.world import SPECTRAL

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("spectral", SPECTRAL)
def test_a_damaged_file(folder, survived, spectral):
    survived(damage.run(folder, times=1, functions=(spectral,), every=5))
