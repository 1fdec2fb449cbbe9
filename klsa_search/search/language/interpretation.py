"""What was understood of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Relaxed = Literal["plain_text", "nothing_to_exclude_from", "no_match"]
"""Why an operator was read as plain words: the query is text, it has nothing but exclusions, or no
document matches the phrase.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInterpretation:
    """What was understood of the text of a query, each part as it stands there.

    words     that documents are ranked by, those of phrases and of what is required among them
    unknown   words that no document holds
    phrases   whose words must stand together
    required  what follows a +
    excluded  what follows a -
    fields    words and phrases asked for in one field
    relaxed   operators that were read as plain words, and why; empty with `operators=True`
    prefixes  beginnings of words, and the terms they stand for, the most frequent first
    joined    words with hyphens, and how documents write them without
    synonyms  words, alone or in a row, and what was asked for besides as it stands for them
    corrections  words that no document holds, and what was asked for in their place or, where they
              are `unknown` still, is only told
    did_you_mean  the query with these in their places, None where there are none

    >>> results = index.search('"bald tyres" coolants pum* -red')
    >>> said: klsa.QueryInterpretation = results.interpretation
    >>> said.words, said.unknown, said.phrases, said.excluded, said.prefixes
    (('bald', 'tyres', 'coolants'), (), ('"bald tyres"',), ('red',), {'pum*': ('pump',)})
    >>> index.search('"coolant leaks in the rain"').interpretation.relaxed
    {'"coolant leaks in the rain"': 'no_match'}
    >>> index.search("coolnat leeks").interpretation.did_you_mean
    'coolant leaks'
    """

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joined: Mapping[str, str] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)
    did_you_mean: str | None = None
