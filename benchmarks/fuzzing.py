"""Fuzz the query language and both forms of filters.

    python -m benchmarks.fuzzing [--inputs 1000000] [--seed 0]

Inputs are real queries and filters, mutated: parts are cut out, doubled, swapped, spliced with
others', repeated some thousand times, and strewn with signs and letters of any script; JSON also
has values put where others belong. Four in ten are queries, four filters as text, two filters as
JSON; one in a hundred is also put to a small index as a whole search. It holds that a query is
always read, that a filter is read or refused by a QueryError that says why, that nothing recurses
(Python may go 300 calls deep, of which JSON that is a hundred deep takes two thirds), and that no
input takes longer than a second of processor time. Each violation is reported, and the command
exits with status 1.
"""

from __future__ import annotations

import argparse
import inspect
import random
import reprlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from klsa_search.errors import KlsaError, QueryError
from klsa_search.search.filters.conditions import in_postorder
from klsa_search.search.filters.json_form import filter_of_mapping
from klsa_search.search.filters.text import filter_of_text
from klsa_search.search.index import Index
from klsa_search.search.query.syntax import parse

FIELDS = ("title", "text", "year", "kind")
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "1", "title": "Wings", "text": "A wing lifts wi-fi, C++ and e-mail.", "year": 1950},
    {"id": "2", "title": "Heat", "text": "Heat in the boundary layer.", "kind": ["a", "old b"]},
    {"id": "3", "title": "Ice", "text": "A layer of ice; 雪が降る.", "year": 1960, "kind": "c"},
]
QUERIES = [
    "wing lift", '"boundary layer" -heat', "+title:wing text:ice*", "wi-fi e-mail C++ C# .NET",
    "layr of icee", 'kind:"old b" -"heat in"', "“typed” \\+plain \\\"", "a* ab* -c* +d*",
    "雪が降る", "http://x.y/z?q=1 12:30 don't", "year:1950 unknown:thing",
]  # fmt: skip
TEXTS = [
    "year >= 1950 AND (kind IN [a, \"old b\"] OR NOT kind EXISTS)", "year 1950 TO 1960",
    "kind != 'old b' OR kind CONTAINS old", "NOT (year < 1955 AND kind IS NULL)",
    "kind NOT IN [a, b, c] AND year IS NOT NULL", "kind NOT CONTAINS 'x\\'y' or year=1950",
    "((((year > 1))))",
]  # fmt: skip
TREES: list[Any] = [
    {"and": [{"field": "year", ">=": 1950, "<": 1960}, {"not": {"field": "kind", "in": ["a"]}}]},
    {"or": [{"field": "kind", "contains": "old"}, {"field": "year", "to": [1950, 1960]}]},
    {"not": {"not": {"field": "kind", "exists": True}}}, {"field": "year", "null": False},
    {"field": "kind", "=": "old b", "!=": "c"}, {"and": []}, {"or": [{"and": [{"or": []}]}]},
]  # fmt: skip
SIGNS = list("\"'“”+-*:\\()[]{},=<>!. \t\n\0") + [
    " AND ", " OR ", " NOT ", " IN [", " TO ", " EXISTS", " IS NULL", " CONTAINS ", "title:", "!=",
    ">=", "((((", "))))", "NOT NOT ", '""', "\\\\", "--", "++", "-+", "**", "::",
]  # fmt: skip
ODD = "éß\u0301\u200b\u202e\ufeff\ud800\U0001f600雪ـا\u0085\u2028ıİ\x7f"
VALUES: list[Any] = [
    None, True, False, 0, -1, 1e308, 10**400, float("nan"), "", "x", "old b", [], {}, [[]],
    {"field": 1}, {"field": "year"}, {"field": "none", "=": 1}, [1, 2, 3], "a" * 20_000,
]  # fmt: skip
LONGEST = 10_000
CALLS = 300
SECONDS = 1.0


def mutated(draw: random.Random, text: str, others: list[str]) -> str:
    """Change a text in one to eight ways."""
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        at, end = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        match draw.randrange(8):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:end] + text[at:]
            case 2 | 3:
                text = text[:at] + draw.choice(SIGNS) + text[at:]
            case 4:
                text = text[:at] + draw.choice(ODD) + text[at:]
            case 5:
                text = text[:at] + draw.choice(others)[-(end - at) or None :]
            case 6:
                text = text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0x110000))))
            case 7 if draw.random() < 0.01:
                part = text[at:end] or draw.choice(SIGNS)
                text = text[:at] + part * (LONGEST // len(part)) + text[end:]
    return text[:LONGEST]


def mutated_tree(draw: random.Random, tree: Any) -> Any:
    """Change a filter as JSON in one place, or wrap it, up to deeper than it may be."""
    tree = deepcopy(tree)  # what is changed is not what others are made of
    for _ in range(draw.choice((1, 1, 2, 4))):
        match draw.randrange(6):
            case 0:
                tree = {draw.choice(("and", "or", "not", "field", "nor")): tree}
            case 1:
                tree = {draw.choice(("and", "or")): [tree, deepcopy(draw.choice(TREES))]}
            case 2 if draw.random() < 0.05:
                for _ in range(draw.choice((98, 99, 100, 101, 200, 3_000))):
                    tree = {"not": tree}
            case _:
                holder, name = draw.choice([*_places(tree)] or [(None, None)])
                if holder is None:
                    tree = deepcopy(draw.choice(VALUES))
                elif isinstance(holder, dict) and draw.random() < 0.3:
                    holder[draw.choice(("field", "=", "to", "in", "exists", "and", "\0"))] = (
                        holder.pop(name)
                    )
                else:
                    holder[name] = deepcopy(draw.choice(VALUES))
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Where a tree holds values: the holder, and the name or number there."""
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict | list):
            for name in list(holder if isinstance(holder, dict) else range(len(holder))):
                yield holder, name
                waiting.append(holder[name])


def read_query(text: str) -> str:
    """Read a query, which no text fails."""
    clauses = parse(text, FIELDS)
    assert all(clause.shown in text for clause in clauses)
    assert bool(clauses) == bool(text.strip())
    return "read"


def read_filter(given: Any) -> str:
    """Read a filter, or see it refused for a reason."""
    try:
        in_postorder(filter_of_text(given) if isinstance(given, str) else filter_of_mapping(given))
        return "read"
    except QueryError as error:
        reason = error.message
    assert reason.startswith("filter: ")
    assert len(reason) < 1_000
    return "refused"


def searched(index: Index, query: str, filter_: Any) -> str:
    """Put an input to an index as a whole search."""
    try:
        index.search(query, 3, filter=filter_, explain=True, highlight=True, quality=True)
    except KlsaError:
        return "refused"
    return "read"


def _size(given: Sequence[Any]) -> int:
    """Characters of texts and values of JSON."""
    return sum(len(one) if isinstance(one, str) else len([*_places(one)]) for one in given)


class Fuzz:
    """Feeds inputs, counts how they end, and keeps what does not hold."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.slowest: dict[str, tuple[float, int]] = {}
        self.wrong: dict[tuple[str, str], str] = {}

    def feed(self, kind: str, read: Callable[..., str], *given: Any) -> None:
        """Feed one input."""
        begin = time.thread_time()
        try:
            ended = read(*given)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            ended = "failed"
            self.wrong.setdefault(
                (kind, type(error).__name__), f"{kind}: {error!r}: {given!r:.500}"
            )
        taken = time.thread_time() - begin
        self.counts[kind, ended] += 1
        if taken > self.slowest.get(kind, (0.0, 0))[0]:
            self.slowest[kind] = taken, _size(given)
        if taken > SECONDS:
            self.wrong.setdefault((kind, "slow"), f"{kind}: {taken:.1f} s: {reprlib.repr(given)}")


def fuzzed(inputs: int, number: int = 0) -> Fuzz:
    """Feed so many inputs."""
    draw, fuzz = random.Random(number), Fuzz()
    from klsa_search.indexing.build import build

    with tempfile.TemporaryDirectory() as folder:
        index = build(DOCUMENTS, name="tiny", home=Path(folder))
        for query, text, tree in zip(QUERIES, TEXTS, TREES, strict=False):
            searched(index, query, text)  # loads and compiles what is needed
            searched(index, query, tree)
            read_filter(text + " )")
        usual, shallow = sys.getrecursionlimit(), len(inspect.stack(0)) + CALLS
        for place in range(inputs):
            query = mutated(draw, draw.choice(QUERIES), QUERIES)
            kind = ("query", "text", "query", "text", "json")[place % 5]
            filter_: Any = None
            if kind == "text":
                filter_ = mutated(draw, draw.choice(TEXTS), TEXTS)
            elif kind == "json":
                filter_ = mutated_tree(draw, draw.choice(TREES))
            sys.setrecursionlimit(shallow)
            if kind == "query":
                fuzz.feed("query", read_query, query)
            else:
                fuzz.feed(f"filter as {kind}", read_filter, filter_)
            sys.setrecursionlimit(usual)
            if place % 500 < 5:
                fuzz.feed("whole search", partial(searched, index), query, filter_)
        index.close()
    return fuzz


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzzing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fuzz = fuzzed(options.inputs, options.seed)
    for kind in sorted(fuzz.slowest):
        ends = {end: count for (of, end), count in sorted(fuzz.counts.items()) if of == kind}
        taken, length = fuzz.slowest[kind]
        print(
            f"{kind}: {ends}; the slowest {1000 * taken:.1f} ms, of {length:,} characters or values"
        )
    for each in fuzz.wrong.values():
        print(each)
    raise SystemExit(1 if fuzz.wrong else 0)


if __name__ == "__main__":
    main()
