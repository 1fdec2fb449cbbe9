"""Copies of indexes, by a backup."""

from __future__ import annotations

import uuid
from pathlib import Path

from klsa_search.storage.backup_writer import back_up
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import restore_index


def copy_index(source: Path, target: Path) -> None:
    """Back up the directory of an index, and restore the index at another path."""
    repository = Repository(f"memory://{uuid.uuid4().hex}/backups")
    back_up(repository, source.parent)
    restore_index(repository, source.name, target)
