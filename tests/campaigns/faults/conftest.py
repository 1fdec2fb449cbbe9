"""A short run of `benchmarks.faults`: the same trials and limits, fewer of each."""

import pytest

from benchmarks.faults.children import scratch
from benchmarks.faults.tally import failures


@pytest.fixture
def folder():
    with scratch() as path:
        yield path


@pytest.fixture
def survived():
    """A function that wants tallies without a failure, of some trials at least."""

    def check(tallies):
        assert not failures(tallies)
        assert all(tally.tried for tally in tallies)

    return check
