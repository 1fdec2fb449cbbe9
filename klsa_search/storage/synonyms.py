"""Synonyms of the queries of an index, rows of the catalogue.

They belong to the index, not to a generation: builds, writes and rollbacks do not change them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.model import text_fault
from klsa_search.errors import SettingsError
from klsa_search.storage.catalog_entry import Entry, change_rows

Synonyms = Mapping[str, tuple[str, ...]]
"""Synonyms of words or phrases."""

SynonymsLike = Mapping[str, Iterable[str]] | Iterable[str]
"""Synonyms by word, or rules: `tv, television`, or one way, `phone => iphone, galaxy`."""

MAX_WORDS: Final = 10_000
"""Limit of words with synonyms."""

MAX_PER_WORD: Final = 100
MAX_SYNONYMS: Final = 100_000
"""Limits of synonyms of one word, and in total."""

MAX_LENGTH: Final = 100
"""Characters of a word or phrase."""

_COMMA: Final = re.compile(r"(?<!\\),")


def checked_synonyms(synonyms_: SynonymsLike) -> dict[str, tuple[str, ...]]:
    """Return synonyms given in either form; SettingsError for invalid ones.

    >>> checked_synonyms(["tv, television", "phone => iphone, galaxy"])["phone"]
    ('iphone', 'galaxy')
    """
    synonyms: dict[str, dict[str, None]] = {}
    total = 0
    for word, others in _pairs(synonyms_):
        listed = synonyms.setdefault(word, {})
        total -= len(listed)
        listed.update(dict.fromkeys(other for other in others if other != word))
        total += len(listed)
        if len(listed) > MAX_PER_WORD:
            raise _invalid(f"{word!r} has more than {MAX_PER_WORD} synonyms; give fewer")
        if len(synonyms) > MAX_WORDS or total > MAX_SYNONYMS:
            raise _invalid(
                f"more than {MAX_WORDS:,} words with synonyms, or {MAX_SYNONYMS:,} "
                "synonyms in total; give fewer"
            )
    return {word: tuple(others) for word, others in synonyms.items() if others}


def synonyms_of_text(text: str) -> dict[str, tuple[str, ...]]:
    """Return the synonyms of a file's text; SettingsError.

    A JSON object or array in a form that `checked_synonyms` accepts; anything else is rules, one a
    line, as in Solr and Elasticsearch, with comment lines that begin with #.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return checked_synonyms(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise _invalid(f"not valid JSON ({error})") from None
    lines = (line.strip() for line in text.splitlines())
    return checked_synonyms([line for line in lines if line and line[0] != "#"])


def stored_synonyms(entry: Entry) -> dict[str, tuple[str, ...]]:
    """Return the synonyms of an index; IndexDamaged."""
    return {word: tuple(json.loads(others)) for word, others in entry.rows("synonyms")}


def write_synonyms(path: Path, synonyms: Synonyms) -> None:
    """Replace the synonyms of the index at a path; none removes them.

    Raise IndexNotFound, IndexBusy, IndexDamaged or StoreError.
    """
    with change_rows(path) as entry:
        _replace(entry, synonyms)


def add_synonyms(path: Path, synonyms: Synonyms) -> None:
    """Add synonyms to those of the index at a path; others keep theirs. See `write_synonyms`.

    SettingsError if there are too many.
    """
    with change_rows(path) as entry:
        present = stored_synonyms(entry)
        added = {word: (*present.get(word, ()), *others) for word, others in synonyms.items()}
        _replace(entry, checked_synonyms({**present, **added}))


def _replace(entry: Entry, synonyms: Synonyms) -> None:
    rows = [(word, json.dumps(others, ensure_ascii=False)) for word, others in synonyms.items()]
    entry.replace("synonyms", rows)


def _pairs(synonyms: SynonymsLike) -> Iterable[tuple[str, list[str]]]:
    if isinstance(synonyms, Mapping):
        for word, others in synonyms.items():
            if isinstance(others, str) or not isinstance(others, Iterable):
                raise _invalid(f"the synonyms of {word!r} are not a list of words")
            yield _word(word), [_word(other) for other in others]
        return
    if isinstance(synonyms, str) or not isinstance(synonyms, Iterable):
        raise _invalid("not a mapping of words or a list of rules")
    for rule in synonyms:
        if not isinstance(rule, str):
            raise _invalid(f"{rule!r} is not a rule; write 'tv, television', or 'phone => iphone'")
        left, arrow, right = rule.partition("=>")
        if "=>" in right:
            raise _invalid(f"the rule {rule[:MAX_LENGTH]!r} has more than one =>; split it")
        words = [_word(part, rule) for part in _COMMA.split(left)]
        others = [_word(part, rule) for part in _COMMA.split(right)] if arrow else words
        if not arrow and len(words) == 1:
            raise _invalid(f"the rule {rule!r} has only one word; add its synonyms")
        yield from ((word, others) for word in words)


def _word(value: Any, rule: str | None = None) -> str:
    """Return a word or phrase with normalised spaces; rules escape a comma with a backslash."""
    if not isinstance(value, str):
        raise _invalid(f"{value!r} is not a word")
    word = " ".join((value if rule is None else value.replace("\\,", ",")).split())
    where = "" if rule is None else f" in the rule {rule[:MAX_LENGTH]!r}"
    if not word:
        raise _invalid(f"a word is blank{where}")
    if fault := text_fault(word):
        raise _invalid(f"{word[:MAX_LENGTH]!a}{where} {fault}")
    if len(word) > MAX_LENGTH:
        raise _invalid(f"{word[:20]!r} and so on{where} has more than {MAX_LENGTH} characters")
    return word


def _invalid(fact: str) -> SettingsError:
    return SettingsError(f"synonyms: {fact}", field="synonyms")
