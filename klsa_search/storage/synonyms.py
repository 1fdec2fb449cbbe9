"""Synonyms: words that stand for others in the queries of an index, in one file next to CURRENT.

    sha256 5a0c...
    {"tv": ["television"], "television": ["tv"], "phone": ["iphone"]}

The first line has the sum of the rest; version 0.2 wrote none.

They belong to the index, not to a generation: builds, writes and going back leave them as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.intake import text_fault
from klsa_search.errors import IndexDamaged, SettingsError, StoreError
from klsa_search.storage.current import current_generation
from klsa_search.storage.files import is_exhausted, read_regular, sync, write_fresh
from klsa_search.storage.generations import writing
from klsa_search.storage.names import NEW_SYNONYMS, SYNONYMS

Synonyms = Mapping[str, tuple[str, ...]]
"""What stands for each of some words, or for several in a row."""

Given = Mapping[str, Iterable[str]] | Iterable[str]
"""Synonyms by word, or as rules: `tv, television`, or one way, `phone => iphone, galaxy`."""

MOST: Final = 10_000
"""Words that have synonyms."""

MOST_OF_ONE: Final = 100
MOST_TOGETHER: Final = 100_000
"""Synonyms of one word, and of all."""

LONGEST: Final = 100
"""Characters of a word, or of several."""

_BYTES: Final = 2**28
_COMMA: Final = re.compile(r"(?<!\\),")

Stamp = tuple[int, int, int]


def checked_synonyms(given: Given) -> dict[str, tuple[str, ...]]:
    """Take synonyms in either form; SettingsError names what is none.

    >>> checked_synonyms(["tv, television", "phone => iphone, galaxy"])["phone"]
    ('iphone', 'galaxy')
    """
    found: dict[str, dict[str, None]] = {}
    together = 0
    for word, others in _pairs(given):
        known = found.setdefault(word, {})
        together -= len(known)
        known.update(dict.fromkeys(other for other in others if other != word))
        together += len(known)
        if len(known) > MOST_OF_ONE:
            raise _misfit(f"{word!r} has more than {MOST_OF_ONE} synonyms; give fewer")
        if len(found) > MOST or together > MOST_TOGETHER:
            raise _misfit(
                f"more than {MOST:,} words with synonyms, or {MOST_TOGETHER:,} "
                "synonyms in total; give fewer"
            )
    return {word: tuple(others) for word, others in found.items() if others}


def synonyms_of_text(text: str) -> dict[str, tuple[str, ...]]:
    """Read synonyms from a file's text; SettingsError.

    A JSON object or array of what `checked_synonyms` takes; anything else is rules, one a line, as
    Solr and Elasticsearch have them, where lines that begin with # are passed over.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return checked_synonyms(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise _misfit(f"not valid JSON ({error})") from None
    lines = (line.strip() for line in text.splitlines())
    return checked_synonyms([line for line in lines if line and line[0] != "#"])


def stamp_of(path: Path) -> Stamp | None:
    """What changes whenever the synonyms of an index do; None where there are none. Cost: 2 µs."""
    try:
        found = (path / SYNONYMS).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_synonyms(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the synonyms of the index at a path; IndexDamaged for a file that has been changed."""
    try:
        content = read_regular(path / SYNONYMS, _BYTES)
        if not content.startswith(b"{"):
            line, _, content = content.partition(b"\n")
            if line != _sum_line(content):
                raise ValueError("it has changed since it was written")
        return checked_synonyms(json.loads(content))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, SettingsError) as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(
            f"cannot read `{path / SYNONYMS}` ({error}); set the synonyms again "
            f"with `klsa-index synonyms {path.name} FILE`, or remove them with "
            "--clear"
        ) from error


def write_synonyms(path: Path, synonyms: Synonyms) -> None:
    """Replace the synonyms of the index at a path in one step, durably; none removes them.

    IndexNotFound; IndexBusy; StoreError for something else in the place of their file.
    """
    current_generation(path)
    with writing(path):
        replace_synonyms(path, synonyms)
        sync(path)


def replace_synonyms(path: Path, synonyms: Synonyms) -> None:
    """Replace the synonyms of an index that is held already. See `write_synonyms`."""
    fresh = path / NEW_SYNONYMS
    try:
        fresh.unlink(missing_ok=True)
        if not synonyms:
            (path / SYNONYMS).unlink(missing_ok=True)
            return
        content = json.dumps(synonyms, ensure_ascii=False, indent=1) + "\n"
        write_fresh(fresh, f"{_sum_line(content.encode()).decode()}\n{content}")
        os.replace(fresh, path / SYNONYMS)
    except IsADirectoryError:
        raise StoreError(
            f"`{path / SYNONYMS}` is a folder that does not belong to the index; move it away"
        ) from None


def _sum_line(content: bytes) -> bytes:
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()


def _pairs(given: Given) -> Iterable[tuple[str, list[str]]]:
    """Each word that is given, and what stands for it."""
    if isinstance(given, Mapping):
        for word, others in given.items():
            if isinstance(others, str) or not isinstance(others, Iterable):
                raise _misfit(f"the synonyms of {word!r} are not a list of words")
            yield _word(word), [_word(other) for other in others]
        return
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _misfit("not a mapping of words or a list of rules")
    for rule in given:
        if not isinstance(rule, str):
            raise _misfit(f"{rule!r} is not a rule; write 'tv, television', or 'phone => iphone'")
        left, arrow, right = rule.partition("=>")
        if "=>" in right:
            raise _misfit(f"the rule {rule[:LONGEST]!r} has more than one =>; split it")
        words = [_word(each, rule) for each in _COMMA.split(left)]
        others = [_word(each, rule) for each in _COMMA.split(right)] if arrow else words
        if not arrow and len(words) == 1:
            raise _misfit(f"the rule {rule!r} has only one word; add its synonyms")
        yield from ((word, others) for word in words)


def _word(given: Any, rule: str | None = None) -> str:
    """Take a word, or several; a comma inside is written with a backslash in rules."""
    if not isinstance(given, str):
        raise _misfit(f"{given!r} is not a word")
    word = " ".join((given if rule is None else given.replace("\\,", ",")).split())
    where = "" if rule is None else f" in the rule {rule[:LONGEST]!r}"
    if not word:
        raise _misfit(f"a word is blank{where}")
    if fault := text_fault(word):
        raise _misfit(f"{word[:LONGEST]!a}{where} {fault}")
    if len(word) > LONGEST:
        raise _misfit(f"{word[:20]!r} and so on{where} has more than {LONGEST} characters")
    return word


def _misfit(fact: str) -> SettingsError:
    return SettingsError(f"synonyms: {fact}", field="synonyms")
