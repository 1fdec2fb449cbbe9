"""The database files of WordNet: which meanings a noun has, and what each is a kind of.

As wndb(5WN) describes them: lines of index.noun are `lemma pos synsets pointers [symbol]... senses
tagged offset...`, those of data.noun `offset file type words(hex) [word id]... pointers
[symbol offset pos ends]... | gloss`; lines of the licence begin with a blank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from klsa_search.errors import ArgumentError

_Held = TypeVar("_Held")

_HYPERNYMS: Final = {"@", "@i"}  # of a kind, and of an instance


def read_nouns(folder: Path) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """Return lemma → synsets, and pairs of a synset and one it is a kind of.

    The words of a lemma are parted by blanks. ArgumentError where a file is missing, or a line is
    cut short or something else.
    """
    meanings = dict(_read(folder / "index.noun", _meanings))
    edges = [edge for held in _read(folder / "data.noun", _hypernyms) for edge in held]
    return meanings, edges


def _meanings(fields: list[str]) -> tuple[str, tuple[str, ...]]:
    synsets, symbols = int(fields[2]), int(fields[3])
    offsets = tuple(fields[6 + symbols :])
    if len(offsets) != synsets or not all(map(str.isdigit, offsets)):
        raise ValueError
    return fields[0].replace("_", " "), offsets


def _hypernyms(fields: list[str]) -> list[tuple[str, str]]:
    offset, words = fields[0], int(fields[3], 16)
    begin = 4 + 2 * words
    pointers = fields[begin + 1 :]
    if not offset.isdigit() or len(pointers) != 4 * int(fields[begin]):
        raise ValueError
    return [
        (offset, above)
        for symbol, above in zip(pointers[::4], pointers[1::4], strict=True)
        if symbol in _HYPERNYMS
    ]


def _read(path: Path, held_by: Callable[[list[str]], _Held]) -> Iterator[_Held]:
    """What each line holds, by its fields; ArgumentError where that raises Value- or IndexError."""
    if not path.is_file():
        raise ArgumentError(
            f"`{path}` is missing; name the folder with index.noun and data.noun of WordNet",
            field="folder",
        )
    # A letter that is no UTF-8 spoils its own lemma or gloss and nothing else.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith(" "):
                continue
            try:
                held = held_by(line.split("|")[0].split())
            except (ValueError, IndexError):
                raise ArgumentError(
                    f"{path}:{number} is not a line of a WordNet database; give "
                    "the files as WordNet distributes them",
                    field="folder",
                ) from None
            yield held
