"""Folders for trials, in memory where there is room: no trial is one of the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = "/dev/shm"


@contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty folder; it is gone at the end."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="klsa-faults-", dir=memory) as folder:
        yield Path(folder)
