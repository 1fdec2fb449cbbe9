"""Filters: conditions on metadata fields, joined by and, or and not; as text and as JSON.

year >= 2020 AND (about IN [pumps, "old roads"] OR NOT seen EXISTS)
{"field": "year", ">=": 2020}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from klsa_search.core.arguments import brief
from klsa_search.errors import QueryError

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedToken


Value = str | int | float | bool
Comparison = Literal["=", "<", "<=", ">", ">=", "TO", "IN", "CONTAINS", "EXISTS"]

MAX_CONDITIONS: Final = 1_000
"""Conditions, and values in lists, of one filter."""
MAX_DEPTH: Final = 100
"""Levels of nested filters."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field.

    values  one; low and high of TO; any number of IN; none of EXISTS
    """

    field: str
    comparison: Comparison
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """All of several filters; true if there are none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of several filters; false if there are none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a filter."""

    part: Filter


Filter = Condition | And | Or | Not


def negation(filter_: Filter) -> Filter:
    """Return the negation of a filter, of a negation the filter itself."""
    return filter_.part if isinstance(filter_, Not) else Not(filter_)


def parts_of(filter_: Filter) -> tuple[Filter, ...]:
    """Return the direct parts of a filter."""
    if isinstance(filter_, Condition):
        return ()
    return (filter_.part,) if isinstance(filter_, Not) else filter_.parts


def in_postorder(filter_: Filter) -> list[Filter]:
    """Return all parts of a filter, each before what contains it; without recursion.

    QueryError for more than 1,000 conditions and values, or more than 100 levels.
    """
    size, operands = 0, []
    stack: list[tuple[Filter, int, bool]] = [(filter_, 1, False)]
    while stack:
        node, depth, visited = stack.pop()
        if visited:
            operands.append(node)
            continue
        size += max(len(node.values), 1) if isinstance(node, Condition) else 1
        if size > MAX_CONDITIONS:
            raise invalid(f"more than {MAX_CONDITIONS:,} conditions and values; simplify it")
        if depth > MAX_DEPTH:
            raise invalid(f"nested more than {MAX_DEPTH} levels deep; flatten it")
        stack.append((node, depth, True))
        stack += [(part, depth + 1, False) for part in reversed(parts_of(node))]
    return operands


def without_field(filter_: Filter, field: str) -> Filter | None:
    """Return a filter without those parts of its ANDs that are about one field alone; None if no
    part is left.

    >>> brand, price = Condition("brand", "IN", ("a", "b")), Condition("price", "<", (9,))
    >>> without_field(And((brand, price)), "brand") == price
    True
    >>> without_field(Or((brand, price)), "brand") == Or((brand, price))
    True
    """
    conditions = [node for node in in_postorder(filter_) if isinstance(node, Condition)]
    if conditions and all(condition.field == field for condition in conditions):
        return None
    if not isinstance(filter_, And):
        return filter_
    parts = [without_field(part, field) for part in filter_.parts]
    left = tuple(part for part in parts if part is not None)
    return left[0] if len(left) == 1 else And(left)


def truth_of(filter_: Filter) -> bool | None:
    """Return whether a filter matches every document, or none; None if that depends on documents.

    A list without values matches nothing; neither do no filters joined by OR, and all documents
    match no filters joined by AND. QueryError as from `in_postorder`.

    >>> truth_of(Not(Condition("tenant", "IN", ())))
    True
    """
    in_postorder(filter_)  # checks its limits, so that recursion ends

    def truth(node: Filter) -> bool | None:
        if isinstance(node, Condition):
            return False if node.comparison == "IN" and not node.values else None
        truths = list(map(truth, parts_of(node)))
        if isinstance(node, Not):
            return None if truths[0] is None else not truths[0]
        decisive = isinstance(node, Or)
        if decisive in truths:
            return decisive
        return None if None in truths else not decisive

    return truth(filter_)


def text_of(filter_: Condition | Not) -> str:
    """Return a condition, or the negation of one by =, in text form; not IN and EXISTS.

    >>> text_of(Condition("brand", "=", ("Black & Decker",)))
    'brand = "Black & Decker"'
    >>> text_of(Condition("list price", "TO", (10, 50))), text_of(Not(Condition("a", "=", ("b",))))
    ('"list price" 10 TO 50', 'a != b')
    """
    condition = filter_ if isinstance(filter_, Condition) else filter_.part
    assert isinstance(condition, Condition)
    name, *values = _quoted(condition.field), *(_quoted(str(one)) for one in condition.values)
    if condition.comparison == "TO":
        return f"{name} {' TO '.join(values)}"
    comparison = condition.comparison if condition is filter_ else "!="
    return f"{name} {comparison} {values[0]}"


def _quoted(text: str) -> str:
    if _WORD.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


MAX_CHARACTERS: Final = 10_000

# Lark reads a WORD to its end, then looks whether it is a keyword: "orange" does not begin with OR.
_GRAMMAR: Final = r"""
    ?start: either
    ?either: both ("OR"i both)*
    ?both: one ("AND"i one)*
    ?one: "NOT"i one -> negated
        | "(" either ")"
        | condition
    !condition: text COMPARISON value
        | text value "TO"i value
        | text "NOT"i? "BETWEEN"i value "AND"i value
        | text "NOT"i? "IN"i list
        | text "NOT"i? "CONTAINS"i text
        | text "NOT"i? "EXISTS"i
        | text "IS"i "NOT"i? "NULL"i
    list: "[" _texts? "]" | "(" _texts? ")"
    _texts: text ("," text)*
    ?value: text | NUMBER -> text
    text: WORD | QUOTED
    COMPARISON: "!=" | "<>" | "<=" | ">=" | "==" | "=" | "<" | ">"
    WORD: /[^\s()\[\],=<>!"']+/
    QUOTED: /"(\\.|""|[^"\\])*"|'(\\.|''|[^'\\])*'/s
    NUMBER.2: /[+-]?(\d{1,3}([ \u00a0\u202f.,'’]\d{3})+([.,]\d+)?|\d+,\d+)(?=[\s()\]]|$)/
    %ignore /\s+/
"""
_TOKEN_NAMES: Final = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "COMMA": ",", "WORD": "a name or value",
    "QUOTED": "a quoted name or value", "NUMBER": "a number",
    "COMPARISON": "one of = != < <= > >=", "$END": "the end",
}  # fmt: skip
"""What messages call the tokens that are not words of the grammar."""
_SAME: Final = {"==": "=", "<>": "!=", "between": "to", "between and": "to"}
"""Operators of SQL and programming languages, and those that they are."""
_ESCAPED: Final = {quote: re.compile(rf"\\(.)|{quote}({quote})", re.DOTALL) for quote in "\"'"}
"""Characters behind \\ and doubled quotes, by the quote around them."""
_WORD: Final = re.compile(r"""[^\s()\[\],=<>!"'\\]+""")
_RESERVED: Final = frozenset(
    {"and", "or", "not", "to", "in", "is", "null", "between", "contains", "exists"}
)
_COLON: Final = re.compile(
    r"""([^\W\d][^\s()\[\],=<>!"':]*)\s*:\s*("[^"]*"|'[^']*'|[^\s()\[\]]*)\s*"""
)
"""A condition as Lucene writes it: `name:value`."""


def filter_of_text(text: str) -> Filter:
    r"""Read a filter from text; one that begins with { as JSON, by `filter_of_mapping`.

    Conditions: `field = value`, `!=`, `<`, `<=`, `>`, `>=`, `field low TO high`, `field IN [a,
    b]`, `field CONTAINS text`, `field EXISTS`, `field IS NULL`, `NOT` before IN, CONTAINS
    and EXISTS, `IS NOT NULL`, and `NOT` before any filter; joined by `AND`, which binds
    tighter, `OR` and parentheses. `==`, `<>`, `field BETWEEN low AND high` and `IN (a, b)` are
    read as well. Names and values with blanks or any of ( ) [ ] , = < > ! are quoted with " or ',
    where \ escapes a character and a doubled quote is one; numbers such as 2.500,00 and 1 000
    need no quotes after a comparison and TO. QueryError reports the position of a fault.
    Cost: some µs a word; the first call 0.1 s.

    >>> filter_of_text("year >= 2020 AND about != 'old roads'")
    And(parts=(Condition(field='year', ...), Not(part=Condition(field='about', ...))))
    """
    from lark.exceptions import UnexpectedInput, UnexpectedToken

    if len(text) > MAX_CHARACTERS:
        raise invalid(
            f"{len(text):,} characters, more than the limit of {MAX_CHARACTERS:,}; shorten it"
        )
    if text.lstrip().startswith(("{", "[")):
        try:
            mapping = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise invalid(f"not valid JSON ({error}); correct it") from None
        return filter_of_mapping(mapping)
    try:
        parsed: Any = _parser().parse(text)
    except UnexpectedToken as error:
        at = error.pos_in_stream
        if at is None or error.token.type == "$END":
            at = len(text)
        raise invalid(_advice(text, at, error)) from None
    except UnexpectedInput as error:
        rest = text[error.pos_in_stream :] if error.pos_in_stream is not None else text
        if rest[:1] in ("'", '"'):
            raise invalid(
                f"the quote at character {error.column} is not closed; close it, or write \\ "
                "before it"
            ) from None
        fact = f"{_shorten(rest)} at character {error.column} is not a name, value or operator"
        raise invalid(f"{fact}; quote names and values with spaces or special characters") from None
    tree: Filter = parsed
    return tree


def _advice(text: str, at: int, error: UnexpectedToken) -> str:
    """Return why the token at a position is wrong, and what to write."""
    accepts = error.accepts
    if "TO" in accepts or "COMPARISON" in accepts:
        for colon in _COLON.finditer(text):
            if colon.start() < at <= colon.end():
                (name, value), fact = colon.groups(), _shorten(colon[0].strip())
                return f"{fact} is not a condition; write `{name} = {value or 'value'}`"
    if accepts == {"TO"}:  # the word before was read as the first value of TO
        return (
            f"{_shorten(text[:at].split()[-1])} is not an operator; write one of = != < <= > >= "
            "IN BETWEEN CONTAINS EXISTS IS, as in `kind CONTAINS port`, or `year 2019 TO 2021`"
        )
    words = sorted(accepts - _TOKEN_NAMES.keys())
    expected = words + [name for key, name in _TOKEN_NAMES.items() if key in accepts]
    if error.token.type == "$END":
        fact = "it is incomplete"
    else:
        fact = f"{_shorten(str(error.token))} is not allowed at character {error.column}"
    quoting = "; quote a value with spaces" if error.token.type == "WORD" else ""
    one_of = "one of " if len(expected) > 1 else ""
    return f"{fact}; expected {one_of}{', '.join(expected)}{quoting}"


def invalid(reason: str) -> QueryError:
    """Return the error of a filter that cannot be read, or that does not fit an index."""
    return QueryError(f"filter: {reason}", field="filter")


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 20 else text[:20] + "...")


@cache
def _parser() -> Lark:
    """Return an LALR parser, which builds the tree bottom-up without recursion."""
    from lark import Lark, Token, Transformer, v_args

    @v_args(inline=True)
    class _FilterTransformer(Transformer[Any, Any]):
        def text(self, token: str) -> str:
            written = str(token)
            if (quote := written[0]) not in _ESCAPED:
                return written
            return _ESCAPED[quote].sub(r"\1\2", written[1:-1])

        def list(self, *texts: str) -> tuple[str, ...]:
            return texts

        def condition(self, field: str, *operator_and_values: Any) -> Filter:
            words = [item.lower() for item in operator_and_values if isinstance(item, Token)]
            values = [item for item in operator_and_values if not isinstance(item, Token)]
            value = values[0] if len(values) == 1 else values or True
            name = " ".join(words).removeprefix("is ").removeprefix("not ")
            condition = _condition(field, name, value)
            return negation(condition) if "not" in words else condition

        def negated(self, part: Filter) -> Filter:
            return negation(part)

        def both(self, *parts: Filter) -> Filter:
            return And(parts)

        def either(self, *parts: Filter) -> Filter:
            return Or(parts)

    return Lark(
        _GRAMMAR, parser="lalr", transformer=_FilterTransformer(), propagate_positions=False
    )


_COMPARISONS: Final = (*(name.lower() for name in get_args(Comparison)), "null", "!=")
_WORDS: Final = {*_COMPARISONS, "and", "or", "not", "filter"}
_SYNTAX: Final = (
    '{"and": [...]}, {"or": [...]}, {"not": {...}} or {"field": NAME, COMPARISON: VALUE}, where a '
    f"comparison is {', '.join(_COMPARISONS[:-1])} or {_COMPARISONS[-1]}"
)


def filter_of_mapping(mapping: object) -> Filter:
    """Read a filter; several comparisons of one field must all be true.

    Values are those of the text form, as JSON types: `to` and `between` take [low, high], `in` a
    list, `exists` and `null` true or false. QueryError for anything else.

    >>> filter_of_mapping({"field": "year", ">=": 2020, "<": 2024})
    And(parts=(Condition(field='year', comparison='>=', ...), Condition(field='year', ...)))
    """
    return _read(mapping, 1)


def _read(mapping: object, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise invalid(f"nested more than {MAX_DEPTH} levels deep; flatten it")
    if not isinstance(mapping, Mapping):
        raise invalid(f"{_repr(mapping)} is not a filter; give {_SYNTAX}")
    if "field" in mapping:
        return _conditions(mapping)
    if len(mapping) != 1 or (operator := next(iter(mapping))) not in ("and", "or", "not"):
        example = _equality(mapping)
        raise invalid(f"{_repr(dict(mapping))} is not a filter; give {example}{_SYNTAX}")
    operands = mapping[operator]
    if operator == "not":
        return negation(_read(operands, depth + 1))
    if not isinstance(operands, list | tuple):
        raise invalid(f"{operator!r} is {_repr(operands)}; give a list of filters")
    parts = tuple(_read(part, depth + 1) for part in operands)
    return And(parts) if operator == "and" else Or(parts)


def _equality(mapping: Mapping[object, object]) -> str:
    """Return the filter that {NAME: VALUE} stands for, for a message; blank for others."""
    name, value = next(iter(mapping.items()), ("", None))
    is_field = isinstance(name, str) and name[:1].isalpha() and name.lower() not in _WORDS
    if len(mapping) != 1 or not is_field or not isinstance(value, str | int | float):
        return ""
    example = json.dumps({"field": name, "=": value}, ensure_ascii=False)
    return f"{example}, in general " if len(example) <= 100 else ""


def _conditions(mapping: Mapping[Any, Any]) -> Filter:
    name = mapping["field"]
    if not isinstance(name, str):
        raise invalid(f"'field' is {_repr(name)}; give the name of a field")
    parts = [_condition(name, key, value) for key, value in mapping.items() if key != "field"]
    if not parts:
        raise invalid(f"field {_repr(name)} has no comparison; give {_SYNTAX}")
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _condition(field: str, comparison: object, value: object) -> Filter:
    """Return the filter of a comparison, as JSON names it, with a value of JSON.

    QueryError for an unknown comparison or a value that it does not take.
    """
    comparison = _SAME.get(str(comparison), comparison)
    if comparison not in _COMPARISONS:
        raise invalid(f"unknown comparison {_repr(comparison)}; give {_SYNTAX}")
    if comparison == "!=":
        return Not(_condition(field, "=", value))
    if comparison == "null":
        return negation(_condition(field, "exists", value))
    if comparison == "exists":
        if not isinstance(value, bool):
            raise invalid(f"field {_repr(field)}: {_repr(value)} is neither true nor false")
        present = Condition(field, "EXISTS")
        return present if value else Not(present)
    values = value if comparison in ("to", "in") else [value]
    if not isinstance(values, list | tuple):
        raise invalid(f"field {_repr(field)}: {_repr(values)} is not a list of values")
    for scalar in values:
        if not isinstance(scalar, str | int | float):
            raise invalid(
                f"field {_repr(field)}: {_repr(scalar)} is not a text, number, true or false"
            )
    if comparison == "to" and len(values) != 2:
        raise invalid(f"field {_repr(field)}: 'to' takes a list of two values, not {len(values)}")
    return Condition(field, cast("Comparison", str(comparison).upper()), tuple(values))


def _repr(value: object) -> str:
    written = brief(value)  # limits the depth
    return written if len(written) <= 60 else written[:60] + "..."
