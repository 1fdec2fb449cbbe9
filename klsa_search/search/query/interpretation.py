"""How the text of a query was interpreted, as an answer reports it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ConfigDict

from klsa_search.core.cached import LazyFields

Relaxed = Literal[
    "plain_text",
    "nothing_to_exclude_from",
    "no_match",
    "capitals",
    "suffix",
    "number",
    "not_an_operator",
    "short_prefix",
]
"""Why an operator was read as plain words: the query is mostly text, it only excludes, no document
contains the phrase, the whole query is in capitals, a hyphen belongs to a suffix or an option, the
query begins with a negative number, the sign or word has no meaning where it is, or a prefix has
one character.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInterpretation(LazyFields):
    """How the text of a query was interpreted; each part as it is written in the query.

    words     words that documents are ranked by, including those of phrases and required ones
    unknown   words that no document contains
    stop_words  stop words that documents have to contain: those of phrases, in capitals among other
              words, or of a query of nothing else; others do not count
    left_out  words of a query of more than 256 distinct ones that do not count: the lightest
    phrases   phrases, whose words must be adjacent
    required  words and phrases after +
    excluded  words and phrases after -
    fields    words and phrases restricted to one field
    boolean   a query with AND, OR or NOT, with the operators that it was read with; else None
    relaxed   operators that were read as plain words, and why: plain_text, the query has more plain
              words than operators, or several lines; nothing_to_exclude_from; no_match, no document
              contains the phrase; capitals, AND, OR or NOT in a query in capitals; suffix, a hyphen
              before the end of a Finnish compound or an option of one letter; number, that of a
              negative number; not_an_operator, a sign, AND, OR or NOT without meaning where it
              is; short_prefix
    prefixes  prefixes, and the terms that match them, most frequent first; with `prefix="last"`
              the last word, and its completions; single characters of scripts without spaces, and
              the pairs that contain them; words of compounds, and the compounds
    variants  words, and how documents also write them: `on-line`, `online`; `utf8`, `utf 8`
    synonyms  words or sequences of words, and the synonyms that were searched as well
    corrections  words that no document contains, and the corrections that were searched instead
              or, for words still in `unknown`, only suggested
    did_you_mean  the query with all corrections applied, if some were only suggested, else None
    id        ID of a document that is the whole query: the first hit, unless a filter excludes it

    >>> results = index.search('"bald tyres" coolants pum* -red')
    >>> said: klsa.QueryInterpretation = results.interpretation
    >>> said.words, said.unknown, said.phrases, said.excluded, said.prefixes
    (('bald', 'tyres', 'coolants'), (), ('"bald tyres"',), ('red',), {'pum*': ('pump',)})
    >>> index.search('"coolant leaks in the rain"').interpretation.relaxed
    {'"coolant leaks in the rain"': 'no_match'}
    >>> said = index.search("coolnat leeks").interpretation
    >>> said.corrections, said.unknown, said.did_you_mean
    ({'coolnat': 'coolant', 'leeks': 'leaks'}, ('leeks',), 'coolant leaks')
    """

    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    boolean: str | None = None
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)
    did_you_mean: str | None = None
    id: str | None = None


_WORD: Final = re.compile(r"\w+")


def replace_words(query: str, words: Mapping[str, str]) -> str:
    """Replace words of a query."""
    if all(map(_WORD.fullmatch, words)):
        return _WORD.sub(lambda matching: words.get(matching[0], matching[0]), query)
    either = "|".join(map(re.escape, words))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda matching: words[matching[0]], query)
