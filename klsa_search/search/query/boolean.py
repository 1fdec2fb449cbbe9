"""Boolean queries: AND, OR and NOT in capitals between words, with parentheses.

NOT binds more strongly than AND, and AND more strongly than OR. Operands side by side are joined
by AND. Any text parses, in linear time: parentheses that have no partner are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from klsa_search.search.query.syntax import PHRASE, Clause, parse

MAX_OPERANDS: Final = 64
"""Operands of a Boolean query; longer queries are read as words, to limit the cost."""

_WORDS: Final = re.compile(r"(?<![^\s(])(?:AND|OR|NOT)(?![^\s(])")
_PARENTHESES: Final = re.compile(rf"{PHRASE}|(?<![^\s(+\-])\(|\)(?![^\s)])", re.DOTALL)
_STRENGTH: Final = {"OR": 1, "AND": 2, "NOT": 3}

Operator = Literal["AND", "OR", "NOT"]


class Operand(NamedTuple):
    """An operand of a Boolean query; `negated` if the documents that it matches are excluded."""

    clause: Clause
    negated: bool


class BooleanQuery(NamedTuple):
    """A Boolean query.

    postfix     operands and operators in postfix order
    written     with all of its operators and parentheses
    operators   as in the query
    stray       parentheses without a partner, and AND, OR and NOT that are not between words
    """

    postfix: tuple[Operand | Operator, ...]
    written: str
    operators: tuple[str, ...]
    stray: tuple[str, ...]

    @property
    def operands(self) -> list[Operand]:
        """Its operands, in order."""
        return [item for item in self.postfix if isinstance(item, Operand)]


def may_be_boolean(text: str) -> bool:
    """Return whether a text has AND, OR or NOT. Cost: 0.1 µs if it does not."""
    return ("AND" in text or "OR" in text or "NOT" in text) and bool(_WORDS.search(text))


def stray_words(text: str) -> list[str]:
    """Return AND, OR and NOT of a text that is no Boolean query.

    >>> stray_words("cats and dogs OR")
    ['OR']
    """
    return _WORDS.findall(text) if may_be_boolean(text) else []


def parse_boolean(text: str, fields: Collection[str]) -> BooleanQuery | None:
    """Return a Boolean query; None if no AND, OR or NOT is between words. Cost: 0.1 µs if none.

    >>> query = parse_boolean("(cats OR dogs) NOT mice", ())
    >>> [item if isinstance(item, str) else item.clause.text for item in query.postfix]
    ['cats', 'dogs', 'OR', 'mice', 'NOT', 'AND']
    """
    if not may_be_boolean(text):
        return None
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
            reader.operator(clause, any(map(_begins_operand, clauses[number + 1 : number + 2])))
    return reader.finish()


def _begins_operand(clause: Clause) -> bool:
    return clause.has_sign or clause.text not in ("AND", "OR", ")")


class _Reader:
    """Orders operands and operators by the shunting-yard algorithm."""

    def __init__(self) -> None:
        self._output: list[Operand | Operator] = []
        self._stack: list[Operator | Literal["("]] = []
        self._written: list[str] = []
        self._operators: list[str] = []
        self._stray: list[str] = []
        self._after_operand = False
        self._extends = False  # whether a following word joins the last operand

    def operand(self, clause: Clause) -> None:
        if self._extends and not clause.has_sign:
            last = self._output[-1]
            assert isinstance(last, Operand)
            text = f"{last.clause.text} {clause.text}"
            joined = last.clause._replace(text=text, shown=text)
            self._output[-1] = last._replace(clause=joined)
            self._written.append(clause.written)
            return
        self._join()
        negated = (self._stack.count("NOT") + (clause.sign == "-")) % 2 == 1
        self._extends = not clause.has_sign and self._stack[-1:] != ["NOT"]
        self._output.append(Operand(clause, negated))
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
