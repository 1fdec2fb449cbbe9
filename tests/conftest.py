"""Fixtures shared by all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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
