"""Fixtures shared by all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


# Before anything imports numba, which reads it once; workers and subprocesses inherit it.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "compiled"))
# What is kept in the cache folder of whoever runs the tests stays as it is.
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".pytest_cache" / "user")


@pytest.fixture(scope="session")
def collections_home() -> Path:
    """Folder with cran, cisi, cacm and med, where there is one."""
    named = os.environ.get("KLSA_COLLECTIONS")
    home = Path(named) if named else ROOT.parent / "shared" / "collections"
    if not (home / "cran").is_dir():
        pytest.skip(
            f"the SMART collections are not at {home}; name their folder in KLSA_COLLECTIONS"
        )
    return home


@pytest.fixture(scope="session")
def datasets_home() -> Path:
    """Folder with ionosphere and reuters21578, where there is one."""
    named = os.environ.get("KLSA_DATASETS")
    home = Path(named) if named else ROOT.parent / "shared" / "datasets"
    if not (home / "ionosphere").is_dir():
        pytest.skip(f"the data sets are not at {home}; name their folder in KLSA_DATASETS")
    return home
