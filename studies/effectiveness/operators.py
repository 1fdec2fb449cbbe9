"""What operators in judged queries change, by default and with operators off.

Queries are asked as they are, and with what people write in text added to them by a seeded
generator: quotes, brackets, hyphens, dashes, colons, line breaks and capitals. Quotes and a dash
before a word are only added to queries of more than `SHORT` words: in a shorter query they are
operators. A second table shows what another `SHORT` would cost each half of the collections.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from klsa_search import Index
from klsa_search.collection.model import Query
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import rank_best
from klsa_search.search.query import operators
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import Bench, Task, heading, percent, row

LANGUAGES: Final = {"finna-fi": "finnish", "jaquad-ja": "japanese", "drcd-zh": "chinese"}
COLLECTIONS: Final = (*KINDS[:4], "cran-1837", *KINDS[4:], *LANGUAGES)
SHORTS: Final = (2, 3, 4, 6, 8, 1000)
_SAMPLED: Final = 200

Words = list[str]


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these."""
    found: dict[str, Any] = {}
    costs: dict[str, dict[int, float]] = {}
    heading("", "queries", "off", "all read", *ADDITIONS, "find nothing: off", "default")
    for name in names or COLLECTIONS:
        task = _task(name, data)
        index = bench.index(task, _settings(name))
        found[name] = {}
        nothing = np.zeros(2, np.int64)
        every, _ = _precisions(index, task, task.queries, operators=True)
        words, _ = _precisions(index, task, task.queries, operators=False)
        changes = [float(np.mean(every) / np.mean(words) - 1)]
        for label, add in ADDITIONS.items():
            asked = _added(task.queries, add)
            off, none_off = _precisions(index, task, asked, operators=False)
            default, none = _precisions(index, task, asked)
            found[name][label] = {"off": off, "default": default}
            changes.append(float(np.mean(default) / np.mean(off) - 1))
            nothing += none_off, none
        costs[name] = _costs(index, task)
        found[name]["costs"] = costs[name]
        first = f"{np.mean(found[name]['as they are']['off']):.4f}"
        row(name, len(task.queries), first, *map(percent, changes), *nothing)
    print()
    heading("worst change with SHORT =", *SHORTS)
    halves = {"collections 1, 3, 5, ...": 0, "collections 2, 4, 6, ...": 1}
    for label, half in halves.items():
        members = [costs[name] for name in list(costs)[half::2]]
        if members:
            row(label, *(percent(min(cost[short] for cost in members)) for short in SHORTS))
    return found


def _costs(index: Index, task: Task) -> dict[int, float]:
    """Worst change of MAP by quotes and dashes in queries of more than three words."""
    costs = dict.fromkeys(SHORTS, 0.0)
    for label in ("quotes", "dashes"):
        asked = _added(task.queries, ADDITIONS[label])
        off, _ = _precisions(index, task, asked, operators=False)
        for short in SHORTS:
            with patch.object(operators, "SHORT", short):
                default, _ = _precisions(index, task, asked)
            costs[short] = min(costs[short], float(np.mean(default) / np.mean(off) - 1))
    return costs


def _settings(name: str) -> dict[str, Any]:
    return {"language": LANGUAGES[name]} if name in LANGUAGES else {}


def _task(name: str, data: Path) -> Task:
    """A task with its judged queries, at most 200 of the newest collections."""
    task = Task.of_target(name, data) if name == "cran-1837" else task_of(name, data)
    judged = {judgement.query_id for judgement in task.judgements}
    queries = [query for query in task.queries if query.id in judged]
    if name in LANGUAGES:
        queries = random.Random(0).sample(queries, min(_SAMPLED, len(queries)))
        chosen = {query.id for query in queries}
        judgements = [each for each in task.judgements if each.query_id in chosen]
        return replace(task, queries=queries, judgements=judgements)
    return replace(task, queries=queries)


def _precisions(
    index: Index, task: Task, queries: Sequence[Query], **search: Any
) -> tuple[list[float], int]:
    """Average precision of each query, and how many find nothing."""
    run = list(rank_best(index, queries, **search))
    measured = Judge(task.judgements, measures=("map",)).measure(iter(run))
    return measured.values("map"), sum(not ranking.document_ids for ranking in run)


def _added(queries: Sequence[Query], add: Callable[[str, random.Random], str]) -> list[Query]:
    drawn = random.Random(7)
    return [replace(query, text=add(query.text, drawn)) for query in queries]


def _words(add: Callable[[Words, random.Random], Words]) -> Callable[[str, random.Random], str]:
    """Change the words of a text; where it has no spaces, its characters."""

    def added(text: str, drawn: random.Random) -> str:
        words = text.split()
        return " ".join(add(words, drawn)) if len(words) > 1 else "".join(add(list(text), drawn))

    return added


def _run(words: Words, drawn: random.Random) -> tuple[int, int]:
    """Draw two to four neighbours, and never all."""
    length = min(drawn.randint(2, 4), len(words) - 1)
    first = drawn.randrange(len(words) - length + 1)
    return first, first + length


def _around(
    words: Words, opened: str, closed: str, drawn: random.Random, least: int = operators.SHORT
) -> Words:
    if len(words) <= least:
        return words
    first, after = _run(words, drawn)
    aside = [*words[first:after]]
    aside[0], aside[-1] = opened + aside[0], aside[-1] + closed
    return [*words[:first], *aside, *words[after:]]


def _at(words: Words, drawn: random.Random, change: Callable[[str], str], least: int = 0) -> Words:
    """Change one word of a query of more than some."""
    if len(words) <= least:
        return words
    place = drawn.randrange(len(words))
    return [*words[:place], change(words[place]), *words[place + 1 :]]


def _hyphens(words: Words, drawn: random.Random) -> Words:
    """Join two neighbours, or leave a hyphen behind a word or between two."""
    place = drawn.randrange(len(words))
    form = drawn.choice([["{}-{}"], ["{}-", "{}"], ["{}", "-", "{}"]])
    two = [*words[place : place + 2]]
    if len(two) < 2:
        return [*words[:place], words[place] + "-"]
    return [*words[:place], *" ".join(form).format(*two).split(), *words[place + 2 :]]


def _lines(words: Words, drawn: random.Random) -> Words:
    """A heading, and a list of what follows."""
    if len(words) < 2:
        return words
    place = drawn.randrange(1, len(words))
    mark = drawn.choice(["-", "- ", "* ", ""])
    return [*words[:place], f"\n{mark}{words[place]}", *words[place + 1 :]]


def _capitals(words: Words, drawn: random.Random) -> Words:
    place = drawn.randrange(len(words))
    return [*words[:place], drawn.choice(["AND", "OR", "NOT"]), *words[place:]]


ADDITIONS: Final[dict[str, Callable[[str, random.Random], str]]] = {
    "as they are": lambda text, _: text,
    "quotes": _words(lambda words, drawn: _around(words, '"', '"', drawn)),
    "brackets": _words(lambda words, drawn: _around(words, "(", ")", drawn, 1)),
    "hyphens": _words(_hyphens),
    "dashes": _words(lambda words, drawn: _at(words, drawn, "-{}".format, operators.SHORT)),
    "colons": _words(lambda words, drawn: _at(words, drawn, "{}:".format)),
    "lines": _words(_lines),
    "capitals": _words(_capitals),
}
"""What is added to a text, with a generator of its own."""
