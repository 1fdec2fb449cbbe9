"""Whether what is written also waits for the disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def syncing_by(sync: Callable[[int], object]) -> Iterator[None]:
    """Use this function for os.fsync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        yield


to_disk = os.fsync
at_once = os.fstat  # most tests lose no power, but what is synced has to be open
