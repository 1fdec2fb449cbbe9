"""Indexes in other processes: open again what was pickled, refuse what was forked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from klsa_search.analysis.tokenizers import trust
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.log_tailer import PointInTime
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_index

Opened = TypeVar("Opened")


def check_process(opened_in: int, path: Path) -> None:
    """Raise StoreError if an index was opened by another process, from which this one was forked.

    path  in the folder of the index
    Locks that threads of that process had acquired are never released here.
    """
    if opened_in != os.getpid():
        raise StoreError(
            f"index `{path.parent.name}` was opened before this process was forked; open it again "
            "in this process with open_index, or start processes by spawn or forkserver"
        )


def reopen(cls: Callable[[Path], Opened], folder: Path, tokenizer: str | None) -> Opened:
    """Open the current generation of the index in a folder, with later writes.

    tokenizer  trusted by the process that pickled the index; unpickling trusts that process
    """
    if tokenizer is not None:
        trust(tokenizer)
    if not is_index(folder):
        raise IndexNotFound(
            f"no index at `{folder}`, the path of the pickled index; restore the "
            "folder, or open the index with open_index"
        )
    return cls(current_generation(folder))


def reopen_snapshot(
    cls: Callable[[Path, PointInTime], Opened],
    generation: Path,
    moment: PointInTime,
    tokenizer: str | None,
) -> Opened:
    """Open a generation as it was at a moment, without later writes."""
    if tokenizer is not None:
        trust(tokenizer)
    if not generation.is_dir():
        raise IndexNotFound(
            f"generation `{generation}` of the pickled snapshot no longer exists; "
            "open the index and take a new snapshot"
        )
    return cls(generation, moment)
