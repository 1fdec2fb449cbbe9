r"""The syntax of queries: from text to clauses. Any text parses, in linear time.

    word        ranks
    "a phrase"  words must be adjacent, in this order; “curly quotes” too
    +, -        before a word or phrase: required, excluded
    name:       before a word or phrase: in this field, if it exists
    begin*      all words with this prefix
    \           before an operator: a literal character

Everything else is text: hyphens inside words, quotes that do not begin a word, are never closed or
are closed inside a word, and colons after names that are not fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from klsa_search.analysis.unicode import QUOTE_IN_HEBREW

_SIGN: Final = r"[+\-](?=[\w\"“”]|\.\w)"
_OF_OTHERS: Final = r"(?<!\S)(?:&&|\|\|)(?!\S)|(?<=[^\W\d_]{2})[~^]\d*+(?:\.\d++)?(?!\S)"
"""Operators of other engines: `&&` and `||` between words, `~2` and `^3` after one."""
_ANY: Final = re.compile(r'["“”*:\\+\-&|~^]')
_OPERATOR: Final = re.compile(rf'["“”*:\\]|(?<!\S){_SIGN}|{_OF_OTHERS}')
_BEGIN: Final = re.compile(r"\S")
_SIGNED: Final = re.compile(_SIGN)
_NAME: Final = re.compile(r'([^\s:"“”\\]++):(?=[^\s:])')
QUOTES: Final = '"“”'
PHRASE: Final = rf'["“”]((?:[^"“”\\]|\\.|{QUOTE_IN_HEBREW})*+)["“”](?!\w)'
_PHRASE: Final = re.compile(PHRASE, re.DOTALL)
_WORD: Final = re.compile(r"\S++")
_ESCAPED: Final = re.compile(r'\\(["“”+\-*:\\])')
_STRAY_SIGN: Final = re.compile(rf"[^\W\d_]\*[^\W\d_]|\A\*[^\W\d_]|{_OF_OTHERS}")
_STRAY_QUOTE: Final = re.compile(rf'\A["“”]|(?<=[^\W\d_])(?!{QUOTE_IN_HEBREW})["“”]')
_BEFORE: Final = "([{<'`,.;!?¿¡"
_BEHIND: Final = ")]}>'`,.;!?"


class Clause(NamedTuple):
    """A clause of a query.

    sign   "+", "-" or ""
    field  field to search, "" for all
    kind   what it is
    text   its words, without operators
    shown  as written in the query, without + or -
    """

    sign: Literal["", "+", "-"]
    field: str
    kind: Literal["word", "phrase", "prefix"]
    text: str
    shown: str

    @property
    def has_sign(self) -> bool:
        """Whether it has an operator."""
        return bool(self.sign or self.field or self.kind != "word")

    @property
    def written(self) -> str:
        """The clause as written in the query."""
        return self.sign + self.shown


def is_plain(text: str) -> bool:
    """Return whether a text has no operators. Cost: 0.3 µs if it has none of their characters."""
    return _ANY.search(text) is None or _OPERATOR.search(text) is None


def parse(text: str, fields: Collection[str]) -> list[Clause]:
    """Split a query into clauses, at blanks outside quotes.

    fields  names of searchable fields

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
        match = _PHRASE.match(text, at)
        kind: Literal["word", "phrase", "prefix"] = "phrase" if match else "word"
        written = match[1] if match else ""
        if match is None:
            match = _WORD.match(text, at)
            assert match is not None  # neither a sign nor a name is followed by a blank
            written = match[0]
            if beginning := _beginning(written):
                kind, written = "prefix", beginning
        at = match.end()
        clauses.append(Clause(sign, name, kind, _ESCAPED.sub(r"\1", written), text[first:at]))
    return clauses


def stray_signs(clauses: Collection[Clause]) -> list[str]:
    """Return words with a sign that is no operator although it may be meant as one.

    >>> stray_signs(parse('ma*l *a 2*3 5" "open wide', ()))
    ['ma*l', '*a', '"open']
    >>> stray_signs(parse("cats && dogs~2 AT&T x^2", ()))
    ['&&', 'dogs~2']
    """
    return [
        clause.written
        for clause in clauses
        if clause.kind == "word"
        and "\\" not in clause.shown
        and (_STRAY_SIGN.search(clause.shown) or _STRAY_QUOTE.search(clause.shown))
    ]


def _beginning(word: str) -> str:
    """Return what precedes the star of a prefix; "" if it is none."""
    bare = word.rstrip(_BEHIND).lstrip(_BEFORE)
    beginning = bare[:-1]
    return beginning if bare[-1:] == "*" and not {"*", "\\"} & set(beginning) else ""
