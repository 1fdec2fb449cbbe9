r"""The syntax of queries: from text to clauses. Any text parses, in linear time.

    word        ranks
    "a phrase"  words must be adjacent, in this order; “curly quotes” too
    +, -        before a word or phrase: required, excluded
    name:       before a word or phrase: in this field, if it exists
    begin*      all words with this prefix
    \           before an operator: a literal character

AND, OR and NOT in capitals between words make a Boolean query, with parentheses. NOT binds more
strongly than AND, and AND more strongly than OR; operands side by side are joined by AND, and
parentheses without a partner are left out.

Everything else is text: hyphens inside words, quotes that do not begin a word, are never closed or
are closed inside a word, and colons after names that are not fields.

Signs may be full-width, quotes „low“ or «angular», and a hyphen U+2010 or a minus sign.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from klsa_search.analysis.segmentation import EMOJI_PATTERN
from klsa_search.analysis.unicode import QUOTE_IN_HEBREW

_SIGN: Final = rf"[+\-](?=[\w\"“”]|\.\w|{EMOJI_PATTERN})"
_OF_OTHER_ENGINES: Final = r"(?<!\S)(?:&&|\|\|)(?!\S)|(?<=[^\W\d_]{2})[~^]\d*+(?:\.\d++)?(?!\S)"
"""Operators of other engines: `&&` and `||` between words, `~2` and `^3` after one."""
_NO_SIGN: Final = r"(?:(?!--)[+\-][+\-#@'‘(\[{]+|[!–—]+)[^\W\d_]"
"""A sign that is none, as another one follows, or of another kind: -#tag, !tag."""
_WILDCARD: Final = r"[^\W\d_][*?][^\W\d_]\w*+(?!=)"
_ASCII_SIGNS: Final = str.maketrans("＂＋－＊：（）‐−", '"+-*:()--')
_QUOTED: Final = re.compile('„[^„“”"]*+[“”]|«[^«»"]*+»|»[^«»"]*+«')
_ANY: Final = re.compile(r'["“”„«»*:\\+\-&|~^!?–—＂＋－＊：‐−]')
_OPERATOR: Final = re.compile(
    rf'["“”„«»*:\\]|(?<!\S)(?:{_SIGN}|{_NO_SIGN})|{_OF_OTHER_ENGINES}|{_WILDCARD}'
)
_BEGIN: Final = re.compile(r"\S")
_SIGNED: Final = re.compile(_SIGN)
_NAME: Final = re.compile(r'([^\s:"“”\\]++):(?=[^\s:])')
QUOTES: Final = '"“”„«»＂'
PHRASE: Final = rf'["“”]((?:[^"“”\\]|\\.|{QUOTE_IN_HEBREW})*+)["“”](?!\w)'
_PHRASE: Final = re.compile(rf"{PHRASE}(?:[~^]\d*+(?:\.\d++)?(?!\S))?", re.DOTALL)
_WORD: Final = re.compile(r"\S++")
_ESCAPED: Final = re.compile(r'\\(["“”+\-*:\\])')
_LAST_WORD: Final = re.compile(r"(?<![^\W_])[^\W_]++\Z")
_STRAY_SIGN: Final = re.compile(rf"{_WILDCARD}|\A\*[^\W\d_]|\A{_NO_SIGN}|{_OF_OTHER_ENGINES}")
_STRAY_QUOTE: Final = re.compile(
    rf'\A(?:["“”„]|[«»](?=\w))|(?<=[^\W\d_])(?!{QUOTE_IN_HEBREW})["“”«»]'
)
_BEHIND_PHRASE: Final = re.compile(r"[~^][\d.]*\Z")
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
    return _ANY.search(text) is None or _OPERATOR.search(_with_ascii_signs(text)) is None


def _with_ascii_signs(text: str) -> str:
    """Return a text of the same length with the operators and quotes that it has in ASCII.

    Quotes of a pair only; any two of "“” are one.
    """
    if text.isascii():
        return text
    return _QUOTED.sub(lambda quoted: f'"{quoted[0][1:-1]}"', text.translate(_ASCII_SIGNS))


def in_capitals(text: str) -> bool:
    """Return whether a text is in capitals; not with letters without case, which say nothing.

    Nor if only AND, OR and NOT are.

    >>> in_capitals("CATS NOT 3"), in_capitals("飛機 NOT DVD"), in_capitals("2 NOT 3")
    (True, False, False)
    """
    if not text.isupper() or (may_be_boolean(text) and not _WORDS.sub("", text).isupper()):
        return False
    return text.isascii() or "Lo" not in map(unicodedata.category, text)


def last_word(query: str) -> str:
    """Return the last word of a query, "" if a blank or a sign follows it."""
    match = _LAST_WORD.search(query)
    return match[0] if match else ""


def parse(text: str, fields: Collection[str]) -> list[Clause]:
    """Split a query into clauses, at blanks outside quotes.

    fields  names of searchable fields

    >>> parse('wing -"boundary layer"', ())[1]
    Clause(sign='-', field='', kind='phrase', text='boundary layer', shown='"boundary layer"')
    >>> [clause.text for clause in parse("http://x 12:30 title:wing", {"title"})]
    ['http://x', '12:30', 'wing']
    """
    typed, text = text, _with_ascii_signs(text)
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
        written = typed[match.start(1) : match.end(1)] if match else ""
        if match is None:
            match = _WORD.match(text, at)
            assert match is not None  # neither a sign nor a name is followed by a blank
            written = typed[at : match.end()]
            if beginning := _beginning(match[0]):
                kind, written = "prefix", beginning
        at = match.end()
        clauses.append(Clause(sign, name, kind, _ESCAPED.sub(r"\1", written), typed[first:at]))
    return clauses


def stray_signs(clauses: Collection[Clause]) -> list[str]:
    """Return words with a sign that is no operator although it may be meant as one.

    >>> stray_signs(parse('ma*l *a 2*3 5" "open wide', ()))
    ['ma*l', '*a', '"open']
    >>> stray_signs(parse("cats && dogs~2 AT&T x^2", ()))
    ['&&', 'dogs~2']
    >>> stray_signs(parse("hot -#tag -(cats -'dogs' --help -$5", ()))
    ['-#tag', '-(cats', "-'dogs'"]
    >>> stray_signs(parse('!cats "hot dogs"~2 d?gs', ())), stray_signs(parse("*", ()))
    (['!cats', '~2', 'd?gs'], ['*'])
    """
    stray = []
    for clause in clauses:
        if clause.kind == "phrase" and (behind := _BEHIND_PHRASE.search(clause.shown)):
            stray.append(behind[0])
        elif clause.kind == "word" and "\\" not in clause.shown:
            is_all = len(clauses) == 1 and not clause.shown.strip("*")
            if is_all or _STRAY_SIGN.search(clause.shown) or _STRAY_QUOTE.search(clause.shown):
                stray.append(clause.written)
    return stray


def name_of(clause: Clause) -> str:
    """Return what precedes the colon of a plain word; "" if nothing does.

    >>> [name_of(clause) for clause in parse("titel:wing std::sort a: title:x", {"title"})]
    ['titel', '', '', '']
    """
    match = None if clause.has_sign else _NAME.match(clause.shown)
    return match[1] if match else ""


def _beginning(word: str) -> str:
    """Return what precedes the star of a prefix; "" if it is none."""
    bare = word.rstrip(_BEHIND).lstrip(_BEFORE)
    beginning = bare.rstrip("*")
    return beginning if beginning != bare and not {"*", "\\"} & set(beginning) else ""


MAX_OPERANDS: Final = 64
"""Operands of a Boolean query; longer queries are read as words, to limit the cost."""

_WORDS: Final = re.compile(r"(?<![^\s(])(?:AND|OR|NOT)(?![^\s(])")
_PARENTHESES: Final = re.compile(
    rf"{PHRASE}|(?:(?<![^\s(+\-])|(?<=\bAND)|(?<=\bOR)|(?<=\bNOT))\(|\)(?![^\s)])", re.DOTALL
)
_STRENGTH: Final = {"OR": 1, "AND": 2, "NOT": 3}

Operator = Literal["AND", "OR", "NOT"]


class BooleanQuery(NamedTuple):
    """A Boolean query.

    postfix     operands and operators in postfix order; the sign of an operand is "-" if the
                documents that it matches are excluded
    written     with all of its operators and parentheses
    operators   as in the query
    stray       parentheses without a partner, and AND, OR and NOT that are not between words
    """

    postfix: tuple[Clause | Operator, ...]
    written: str
    operators: tuple[str, ...]
    stray: tuple[str, ...]

    @property
    def operands(self) -> list[Clause]:
        """Its operands, in order."""
        return [item for item in self.postfix if isinstance(item, Clause)]


def may_be_boolean(text: str) -> bool:
    """Return whether a text has AND, OR or NOT. Cost: 0.1 µs if it does not."""
    return ("AND" in text or "OR" in text or "NOT" in text) and bool(_WORDS.search(text))


def stray_words(text: str) -> list[str]:
    """Return AND, OR and NOT of a text that is no Boolean query.

    >>> stray_words("cats and dogs OR")
    ['OR']
    """
    return _WORDS.findall(text) if may_be_boolean(text) else []


TRANSLATED: Final = frozenset({"UND", "ODER", "NICHT", "ET", "OU", "SAUF"})
"""What AND, OR and NOT are in German and French, where they are operators elsewhere."""


def translated_operators(text: str) -> list[str]:
    """Return words in capitals that may be meant as operators: between other words.

    >>> translated_operators("Hunde ODER Katzen"), translated_operators("ET at home")
    (['ODER'], [])
    """
    return [word for word in text.split()[1:-1] if word in TRANSLATED]


def parse_boolean(text: str, fields: Collection[str]) -> BooleanQuery | None:
    """Return a Boolean query; None if no AND, OR or NOT is between words. Cost: 0.1 µs if none.

    >>> query = parse_boolean("(cats OR dogs) NOT mice", ())
    >>> [item if isinstance(item, str) else item.text for item in query.postfix]
    ['cats', 'dogs', 'OR', 'mice', 'NOT', 'AND']
    """
    if not may_be_boolean(text):
        return None
    text = _with_ascii_signs(text)
    padded = _PARENTHESES.sub(lambda sign: f" {sign[0]} " if len(sign[0]) == 1 else sign[0], text)
    reader = _Reader()
    clauses = parse(padded, fields)
    for number, clause in enumerate(clauses):
        if clause.has_sign or clause.text not in ("AND", "OR", "NOT", "(", ")"):
            reader.operand(clause)
        elif clause.text == "(":
            reader.open()
        elif clause.text == ")":
            reader.close()
        else:
            after = clauses[number + 1 : number + 2]
            has_operand = any(one.has_sign or one.text not in ("AND", "OR", ")") for one in after)
            reader.operator(clause, has_operand)
    return reader.finish()


class _Reader:
    """Orders operands and operators by the shunting-yard algorithm."""

    def __init__(self) -> None:
        self._output: list[Clause | Operator] = []
        self._stack: list[Operator | Literal["("]] = []
        self._written: list[str] = []
        self._operators: list[str] = []
        self._stray: list[str] = []
        self._after_operand = False
        self._extends = False  # whether a following word joins the last operand

    def operand(self, clause: Clause) -> None:
        if self._extends and not clause.has_sign:
            last = self._output[-1]
            assert isinstance(last, Clause)
            text = f"{last.text} {clause.text}"
            self._output[-1] = last._replace(text=text, shown=text)
            self._written.append(clause.written)
            return
        self._join()
        negated = (self._stack.count("NOT") + (clause.sign == "-")) % 2 == 1
        self._extends = not clause.has_sign and self._stack[-1:] != ["NOT"]
        self._output.append(clause._replace(sign="-" if negated else ""))
        if clause.sign == "-":
            self._output.append("NOT")
        self._written.append(clause.written)
        self._after_operand = True

    def open(self) -> None:
        self._join()
        self._stack.append("(")
        self._written.append("(")
        self._after_operand = self._extends = False

    def close(self) -> None:
        if "(" not in self._stack or not self._after_operand:
            self._stray.append(")")
            return
        self._pop(0)
        self._stack.pop()
        self._written.append(")")
        self._extends = False

    def operator(self, clause: Clause, has_operand: bool) -> None:
        name = clause.text
        if not has_operand or (name != "NOT" and not self._after_operand):
            self._stray.append(name)  # not between words
            if not self._after_operand:
                self.operand(clause)
            return
        assert name in ("AND", "OR", "NOT")
        if name == "NOT":
            self._join()
        else:
            self._pop(_STRENGTH[name])
        self._stack.append(name)  # type: ignore[arg-type]
        self._written.append(name)
        self._operators.append(name)
        self._after_operand = self._extends = False

    def finish(self) -> BooleanQuery | None:
        if not self._operators or not self._after_operand:
            return None
        self._pop(0)
        while "(" in self._stack:
            self._stack.pop()
            self._stray.append("(")
            self._pop(0)
        written = " ".join(self._written).replace("( ", "(").replace(" )", ")")
        return BooleanQuery(
            tuple(self._output), written, tuple(self._operators), tuple(self._stray)
        )

    def _join(self) -> None:
        """Put AND between operands side by side."""
        if self._after_operand:
            self._pop(_STRENGTH["AND"])
            self._stack.append("AND")
            self._after_operand = False

    def _pop(self, strength: int) -> None:
        """Move operators of at least this strength to the output, up to a parenthesis."""
        while self._stack and self._stack[-1] != "(" and _STRENGTH[self._stack[-1]] >= strength:
            operator = self._stack.pop()
            assert operator != "("
            self._output.append(operator)
