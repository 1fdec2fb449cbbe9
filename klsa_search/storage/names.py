"""Names: what an index and its parts are called on disk."""

from __future__ import annotations

import re
from pathlib import Path

from klsa_search.errors import SettingsError

CURRENT = "CURRENT"
LOCK = "LOCK"
WRITING = "WRITING"
LOCKS = (LOCK, WRITING)
"""The first is held by who changes what CURRENT says, the second also by who writes to the log."""
HOLDERS = tuple(f"{lock}-holder" for lock in LOCKS)
"""Files that version 0.2 wrote next to a lock, and may have left."""
MANIFEST = "manifest.json"
MARKER = "KLSA-INDEX"
GENERATION = re.compile(r"[0-9]{6}")

# Incomplete files have names that users would not choose: a process that dies leaves them.
NEW_CURRENT = ".CURRENT.klsa-new"
DELETED = ".CURRENT.klsa-deleted"
NEW, GONE = "klsa-new", "klsa-gone"
HALF_DONE = re.compile(rf"\.{GENERATION.pattern}\.({NEW}|{GONE})")

SYNONYMS = "SYNONYMS"
NEW_SYNONYMS = f".{SYNONYMS}.{NEW}"

WORK = re.compile(r"\.work-[0-9a-f]{32}\.klsa-new")
"""Of an index: what a build by many processes has done so far, until it is sealed."""

SCRATCH = "scratch"
WRITTEN = re.compile(r"[a-z][a-z0-9_]*\.npy|vocabulary\.txt|documents\.db")
"""Files of a generation besides its manifest and its mark, in any format so far."""

WRITES = "WRITES"
BEGUN = f"{WRITES}-begun"
NEW_WRITES = f".{WRITES}.{NEW}"
LIVING = re.compile(
    rf"{WRITES}(-begun|-wal|-shm|-journal)?|{re.escape(NEW_WRITES)}(-journal)?"
    rf"|delta-[a-z0-9-]+\.npz|\.delta-[a-z0-9-]+\.{NEW}"
    rf"|saturated\.lock|saturated-[a-z0-9-]+\.bin|\.saturated-[a-z0-9-]+\.{NEW}"
)
"""Files that come into a generation after it was sealed: the log, and what was made from it."""

JUDGEMENTS = "JUDGEMENTS"
JUDGED = (JUDGEMENTS, f"{JUDGEMENTS}-journal")
"""Of the index, not of a generation: what people said of documents, and its journal."""

INDEX_FILES = (CURRENT, MARKER, SYNONYMS, JUDGEMENTS)
"""Files of an index, besides its generations, that have content: `verify` reads each."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def index_path(home: Path, name: str) -> Path:
    """Folder of an index; SettingsError for a name that is no plain file name."""
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"name = {name!r} is not an index name: use 1 to 100 letters, digits, "
            "'.', '_' or '-', beginning with a letter or digit",
            field="name",
        )
    return home / name
