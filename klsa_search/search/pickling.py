"""Pickling of an index as its path, for other processes that can read its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from klsa_search.analysis.tokenizers import trust
from klsa_search.errors import IndexNotFound
from klsa_search.store.current import current_generation
from klsa_search.store.log_format import Last
from klsa_search.store.marking import is_index

Opened = TypeVar("Opened")


class Moment(NamedTuple):
    """What a pinned index is pinned to besides its generation."""

    last: Last
    synonyms: Mapping[str, Sequence[str]]


def reopened(kind: Callable[[Path], Opened], folder: Path, tokenizer: str | None) -> Opened:
    """Open the generation in use of the index in a folder, with all that was written to it.

    tokenizer  what the process that pickled it trusted; unpickling trusts that process
    """
    if tokenizer is not None:
        trust(tokenizer)
    if not is_index(folder):
        raise IndexNotFound(
            f"no index at `{folder}`, the path of the pickled index; restore the "
            "folder, or open the index with open_index"
        )
    return kind(current_generation(folder))


def pinned_again(
    kind: Callable[[Path, Moment], Opened],
    generation: Path,
    moment: Moment,
    tokenizer: str | None,
) -> Opened:
    """Open a generation as it was at a moment, whatever was written and built since."""
    if tokenizer is not None:
        trust(tokenizer)
    if not generation.is_dir():
        raise IndexNotFound(
            f"generation `{generation}` of the pickled snapshot no longer exists; "
            "open the index and take a new snapshot"
        )
    return kind(generation, moment)
