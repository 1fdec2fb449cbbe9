"""Parts of messages: numbers of things and bytes, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number of things in words; `things` is the plural, by default with an s.

    >>> counted(1, "document"), counted(1_200, "document"), counted(0, "batch", "batches")
    ('1 document', '1,200 documents', '0 batches')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def in_bytes(size: float) -> str:
    """Return a number of bytes as text.

    >>> in_bytes(12), in_bytes(3.4 * 2**20)
    ('12 B', '3.4 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def first_of(names: Sequence[str], thing: str) -> str:
    """Return the first of some names, and how many more things there are.

    >>> first_of(["a.csv"], "file"), first_of(["a.csv", "b.csv"], "file")
    ('a.csv', 'a.csv and 1 more file')
    """
    return f"{names[0]} and {counted(len(names) - 1, f'more {thing}')}" if names[1:] else names[0]


def words(text: str) -> frozenset[str]:
    """Return the words of a text, for constants.

    >>> sorted(words("th td"))
    ['td', 'th']
    """
    return frozenset(text.split())


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a question after the nearest name, for a message; blank if none is near.

    >>> suggestion("rankr", ["ranker", "filter"]), suggestion("x", ["ranker"])
    ('did you mean `ranker`? ', '')
    """
    near = get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`? " if near else ""
