"""Spools: the same values in memory and in a file."""

import numpy as np
import pytest

from klsa_search.core.array_types import Spool


@pytest.mark.parametrize("room", [None, 0, 12, 10**6])
def test_a_spool_returns_what_was_written(tmp_path, room):
    spool = Spool(np.int32) if room is None else Spool(np.int32, tmp_path, room)
    assert (len(spool), spool.read().tolist()) == (0, [])
    for piece in ([1, 2], [], [3, 4, 5]):
        spool.append(np.array(piece, np.int64))
        spool.read(0, 1)  # between two appends, it disturbs none
    assert len(spool) == 5
    assert spool.read().tolist() == [1, 2, 3, 4, 5]
    assert spool.read(1, 4).tolist() == [2, 3, 4]
    assert spool.read().dtype == np.int32
    spool.close()
    assert not list(tmp_path.iterdir())
