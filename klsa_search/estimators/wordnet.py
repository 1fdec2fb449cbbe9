"""The database files of WordNet: which meanings a noun has, and what each is a kind of.

Lines of index.noun are `lemma pos synsets pointers [symbol]... senses tagged offset...`, those of
data.noun `offset file type words(hex) [word id]... pointers [symbol offset pos ends]... | gloss`;
lines of the licence begin with a blank.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.errors import ArgumentError

_HYPERNYMS = {"@", "@i"}  # of a kind, and of an instance


def read_nouns(folder: Path) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """Return lemma → synsets, and pairs of a synset and one it is a kind of."""
    meanings = {fields[0]: _synsets(fields) for fields in _lines(folder / "index.noun")}
    edges = [
        (fields[0], above)
        for fields in _lines(folder / "data.noun")
        for above in _hypernyms(fields)
    ]
    return meanings, edges


def _synsets(fields: list[str]) -> tuple[str, ...]:
    return tuple(fields[-int(fields[2]) :])


def _hypernyms(fields: list[str]) -> Iterator[str]:
    begin = 4 + 2 * int(fields[3], 16)
    for at in range(begin + 1, begin + 1 + 4 * int(fields[begin]), 4):
        symbol, offset, part_of_speech = fields[at : at + 3]
        if symbol in _HYPERNYMS and part_of_speech == "n":
            yield offset


def _lines(path: Path) -> Iterator[list[str]]:
    """Fields of each line; ArgumentError where the file is missing or holds something else."""
    if not path.is_file():
        raise ArgumentError(
            f"{path} is missing: name the folder that holds WordNet's index.noun and data.noun",
            field="folder",
        )
    number_at = 2 if path.name == "index.noun" else 0  # the field that holds digits alone
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith(" "):
                continue
            fields = line.split("|")[0].split()
            if len(fields) < 6 or not fields[number_at].isdigit():
                raise ArgumentError(
                    f"{path}:{number} is no line of a WordNet database: give the files as "
                    "WordNet distributes them",
                    field="folder",
                )
            yield fields
