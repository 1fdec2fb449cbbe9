"""Columns of prose, which are the texts of a source that names none for them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeVar

from klsa_search.collection.field_paths import flat, value_at
from klsa_search.collection.reading_options import COMMON_NAMES, TEXT_NAMES, Columns
from klsa_search.collection.vectors import without_vectors
from klsa_search.errors import CollectionError

_Row = TypeVar("_Row")

SAMPLE: Final = 50
"""Records at the beginning that tell which columns have prose."""

_MIN_WORDS: Final = 4
"""Words of a value of prose, on average."""

_MIN_DISTINCT: Final = 0.5
"""Share of values that differ, at least: removed posts all have the same text."""

_WORD: Final = re.compile(r"[^\W\d_]+")
_NO_PROSE: Final = re.compile(r"\S*[/\\@=]\S*|\S*\d\S*")


def read_ahead(rows: Iterator[_Row]) -> tuple[list[_Row], Iterator[_Row]]:
    """Return the first rows, and an iterator over all of them.

    An error of reading is raised after the rows that precede it.
    """
    first, fault = list[_Row](), None
    try:
        for row in islice(rows, SAMPLE):
            first.append(row)
    except CollectionError as error:
        fault = error

    def again() -> Iterator[_Row]:
        yield from first
        if fault is not None:
            raise fault
        yield from rows

    return first, again()


def with_prose(
    columns: Columns, names: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> Columns:
    """Return columns whose texts are the columns of prose among the first records.

    All of them belong to one object, the one with most prose, which also gives ID and title. One
    with the values of another, or their HTML, is left out. Without prose, nested fields with names
    for texts are the texts; without these nothing changes.
    """
    values = _texts_by_path(records)
    id_and_title = (columns.id_in(names), columns.title_in(names))
    lengths: dict[str, dict[str, int]] = {}
    for path, texts in values.items():
        parent, _, name = path.rpartition(".")
        is_used = path in id_and_title or name == "title"
        if not is_used and _is_prose(name, texts):
            lengths.setdefault(parent, {})[path] = sum(map(len, texts))
    if not lengths:  # short ones are named for texts, as in `messages.text`
        for path, texts in values.items():
            parent, _, name = path.rpartition(".")
            if parent and name.lower() in (*TEXT_NAMES, *COMMON_NAMES["text"]):
                lengths.setdefault(parent, {})[path] = sum(map(len, texts))
    if not lengths:
        return columns
    parent = min(lengths, key=lambda path: (-sum(lengths[path].values()), path.count(".")))
    plain = [
        path
        for path in lengths[parent]
        if path.removesuffix("_html") not in lengths[parent] or not path.endswith("_html")
    ]
    chosen = {tuple(values[path]): path for path in reversed(plain)}
    columns = replace(columns, text=tuple(reversed(chosen.values())))

    def beside(role: str, kinds: type | tuple[type, ...]) -> str:
        path = f"{parent}.{role}"
        is_used = role not in columns.unused and isinstance(value_at(records[0], path), kinds)
        return path if is_used else ""

    if not columns.id and columns.id_in(names) is None:
        columns = replace(columns, id=beside("id", (str, int)))
    return columns if columns.title_in(names) else replace(columns, title=beside("title", str))


def _texts_by_path(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the texts of each path, not blank; a list that has a sentence is one text."""
    values: dict[str, list[str]] = {}
    for record in records:
        for path, value in flat(without_vectors(record)).items():
            items = value if isinstance(value, list) else [value]
            texts = [item for item in items if isinstance(item, str) and item.strip()]
            if any(_words(text) >= _MIN_WORDS for text in texts):
                texts = ["\n".join(texts)]
            if texts:
                values.setdefault(path, []).extend(texts)
    return values


def _words(text: str) -> int:
    """Return the number of words that are neither links nor codes."""
    words = _WORD.findall(_NO_PROSE.sub(" ", text))
    # Scripts without blanks between words have no case.
    return sum(1 if word.lower() != word.upper() else (len(word) + 1) // 2 for word in words)


def _is_prose(name: str, texts: Sequence[str]) -> bool:
    """Return whether the values of a column are sentences rather than names, links or codes.

    If its name may be a text, they are longer: a table without header has one there.
    """
    if sum(map(_words, texts)) < _MIN_WORDS * len(texts):
        return False
    is_varied = len({*texts}) >= _MIN_DISTINCT * len(texts)
    is_question = name.endswith(("?", "？"))  # as in Google Forms
    is_header = is_question or (name.isascii() and name.isidentifier())
    return is_varied and (is_header or sum(map(len, texts)) >= 2 * len(name) * len(texts))
