"""What was understood of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What was understood of the text of a query, each part as it stands there.

    words     that documents are ranked by, those of phrases and of what is required among them
    unknown   words that no document holds
    phrases   whose words must stand together
    required  what follows a +
    excluded  what follows a -
    fields    words and phrases asked for in one field
    prefixes  beginnings of words, and the terms they stand for, the most frequent first
    joined    words with hyphens, and how documents write them without
    synonyms  words, alone or in a row, and what was asked for besides as it stands for them
    corrections  words that no document holds, and what was asked for in their place or, where they
              are `unknown` still, is only told
    did_you_mean  the query with these in their places, None where there are none

    >>> said: klsa.Understood = index.search('"bald tyres" coolants pum* -red').understood
    >>> said.words, said.unknown, said.phrases, said.excluded, said.prefixes
    (('bald', 'tyres', 'coolants'), (), ('"bald tyres"',), ('red',), {'pum*': ('pump',)})
    >>> index.search("coolnat leeks").understood.did_you_mean
    'coolant leaks'
    """

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joined: Mapping[str, str] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)
    did_you_mean: str | None = None
