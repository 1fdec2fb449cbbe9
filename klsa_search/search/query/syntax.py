r"""The text of a query → its clauses. Any text parses, in time that is linear in its length.

    word        ranks
    "a phrase"  its words must stand together, in their order; “quotes” of this kind too
    +, -        before a word or phrase: must be there, must not be there
    name:       before a word or phrase: in that field, if there is one of that name
    begin*      all words that begin so
    \           before one of these signs: it is none

Nothing else is a sign: not a hyphen inside a word, not a quote that does not begin one, is never
closed or is closed inside a word, not a colon behind what is no field.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

_SIGN: Final = r"[+\-](?=[\w\"“”]|\.\w)"
_ANY: Final = re.compile(r'["“”*:\\+\-]')
_OPERATOR: Final = re.compile(rf'["“”*:\\]|(?<!\S){_SIGN}')
_BEGIN: Final = re.compile(r"\S")
_SIGNED: Final = re.compile(_SIGN)
_NAME: Final = re.compile(r'([^\s:"“”\\]++):(?=[^\s:])')
_PHRASE: Final = re.compile(r'["“”]((?:[^"“”\\]|\\.)*+)["“”](?!\w)', re.DOTALL)
_WORD: Final = re.compile(r"\S++")
_ESCAPED: Final = re.compile(r'\\(["“”+\-*:\\])')
_BEFORE: Final = "([{<'`,.;!?¿¡"
_BEHIND: Final = ")]}>'`,.;!?"


class Clause(NamedTuple):
    """One part of a query.

    sign   what is before it, "" for nothing
    field  whose words are meant, "" for all
    kind   what it is
    text   what is asked for, without signs
    shown  as it stands in the query, without + or -
    """

    sign: Literal["", "+", "-"]
    field: str
    kind: Literal["word", "phrase", "prefix"]
    text: str
    shown: str

    @property
    def has_sign(self) -> bool:
        """Whether it is anything but words."""
        return bool(self.sign or self.field or self.kind != "word")

    @property
    def written(self) -> str:
        """The clause as it stands in the query."""
        return self.sign + self.shown


def is_plain(text: str) -> bool:
    """Whether a text has nothing that could be a sign. Cost: 0.3 µs where it has no such letter."""
    return _ANY.search(text) is None or _OPERATOR.search(text) is None


def parse(text: str, fields: Collection[str]) -> list[Clause]:
    """Take a query apart; what stands between blanks is one clause, unless it is in quotes.

    fields  names of those that can be asked for

    >>> parse('wing -"boundary layer"', ())[1]
    Clause(sign='-', field='', kind='phrase', text='boundary layer', shown='"boundary layer"')
    >>> [clause.text for clause in parse("http://x 12:30 title:wing", {"title"})]
    ['http://x', '12:30', 'wing']
    """
    clauses, at = [], 0
    while begin := _BEGIN.search(text, at):
        at = begin.start()
        sign: Literal["", "+", "-"] = ""
        if _SIGNED.match(text, at):
            sign = "+" if text[at] == "+" else "-"
            at += 1
        first, name = at, ""
        if (named := _NAME.match(text, at)) and named[1] in fields:
            name, at = named[1], named.end()
        found = _PHRASE.match(text, at)
        kind: Literal["word", "phrase", "prefix"] = "phrase" if found else "word"
        given = found[1] if found else ""
        if found is None:
            found = _WORD.match(text, at)
            assert found is not None  # a blank follows neither a sign nor a name
            given = found[0]
            if beginning := _beginning(given):
                kind, given = "prefix", beginning
        at = found.end()
        clauses.append(Clause(sign, name, kind, _ESCAPED.sub(r"\1", given), text[first:at]))
    return clauses


def _beginning(word: str) -> str:
    """What comes before the star of a prefix; "" where there is none."""
    bare = word.rstrip(_BEHIND).lstrip(_BEFORE)
    beginning = bare[:-1]
    return beginning if bare[-1:] == "*" and not {"*", "\\"} & set(beginning) else ""
