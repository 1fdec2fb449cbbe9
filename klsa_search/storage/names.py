"""Names of an index and its files on disk."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import NoneType

from klsa_search.core.arguments import checked_argument
from klsa_search.errors import SettingsError

CURRENT = "CURRENT"
LOCK = "LOCK"
LOG_LOCK = "WRITING"
LOCKS = (LOCK, LOG_LOCK)
"""The first is taken to change CURRENT, the second also to write to the log."""
MANIFEST = "manifest.json"
MARKER = "KLSA-INDEX"
PARTITIONS = "partitions.json"
"""File of a generation that has partitions: see `storage.partitions`."""
PARTITION = re.compile(r"[0-9]{6}-([0-9]{1,4}|terms)")
"""Folders of partitions, and of the terms that they have in common."""
GENERATION = re.compile(r"[0-9]{6}")

# Names of incomplete files, which an interrupted process may leave; users would not choose them.
NEW_CURRENT = ".CURRENT.klsa-new"
DELETED = ".CURRENT.klsa-deleted"
NEW, GONE = "klsa-new", "klsa-gone"
NEW_MARKER = f".{MARKER}.{NEW}"
TEMPORARY_FOLDER = re.compile(rf"\.{GENERATION.pattern}\.({NEW}|{GONE})")

CATALOG = "catalog.db"
"""Database of an index directory: see `storage.catalog`."""
CATALOG_ID = "CATALOG-ID"
"""File of an index with the ID by which the catalogue knows it."""
CATALOG_FILES = (CATALOG_ID, f".{CATALOG_ID}.{NEW}")

SCRATCH = "scratch"
PASSAGES = "passages"
"""Folder within a generation that has the index of its passages."""

WRITE_LOG = "WRITES"
LOG_ID = f"{WRITE_LOG}-begun"
NEW_WRITE_LOG = f".{WRITE_LOG}.{NEW}"
LOG_FILES = re.compile(
    rf"{WRITE_LOG}(-begun|-wal|-shm|-journal)?|{re.escape(NEW_WRITE_LOG)}(-journal)?"
    rf"|delta-[a-z0-9-]+\.npz|\.delta-[a-z0-9-]+\.{NEW}"
    rf"|saturated\.lock|saturated-[a-z0-9-]+\.bin|\.saturated-[a-z0-9-]+\.{NEW}"
)
"""Files added to a generation after its commit: the log, and files derived from it."""

EMBEDDINGS = "EMBEDDINGS"
EMBEDDING_FILES = (EMBEDDINGS, f"{EMBEDDINGS}-journal")
"""Computed vectors that no generation has yet, and their journal: see `storage.vectors`."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_built(path: Path) -> bool:
    """Return whether there is a complete index at a path, in partitions or not."""
    return os.path.lexists(path / CURRENT)


def folder_of(generation: Path) -> Path:
    """Return the folder that has a generation, also of its passages: of an index or partition."""
    return (generation.parent if generation.name == PASSAGES else generation).parent


def index_of(generation: Path) -> Path:
    """Return the folder of the index of a generation, also of a partition or of passages."""
    return index_with(folder_of(generation))


def index_with(path: Path) -> Path:
    """Return the folder of the index that has a partition, or its terms; others as they are."""
    is_partition = PARTITION.fullmatch(path.name) and os.path.lexists(path.parent / MARKER)
    return path.parent if is_partition else path


def index_directory(home: str | Path | None = None) -> Path:
    """Return the index directory: `home`, else `$KLSA_HOME`, else `index`."""
    checked_argument("home", home, str, os.PathLike, NoneType)
    return Path(os.environ.get("KLSA_HOME") or "index") if home is None else Path(home)


def index_path(home: Path, name: str) -> Path:
    """Return the folder of an index; SettingsError for a name that is not a plain file name."""
    if not NAME.fullmatch(checked_argument("name", name, str)) or name.startswith(CATALOG):
        raise SettingsError(
            f"name = {name!r} is not an index name: use 1 to 100 letters, digits, "
            f"'.', '_' or '-', beginning with a letter or digit, and not with {CATALOG}",
            field="name",
        )
    return home / name
