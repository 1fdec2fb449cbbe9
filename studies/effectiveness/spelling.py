"""What putting the words of queries right changes, on the collections of `kinds`.

As they stand (`spelling = off`) against as a search reads them by default. A second table says why
small collections only suggest: of the words of the queries, how many a sample of the documents
would replace as all documents do, and how many that are right, or otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from klsa_search import Index
from klsa_search.evaluation.comparison import TIE
from klsa_search.search.query import corrections
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import Bench, Task, chance, compared, heading, percent, row

SAMPLES: Final = (9, 30, 100, 300, 1000, 3000)
_QUERIES: Final = 200
_WORDS: Final = 600
"""Queries and their words that are looked at in a collection."""


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these."""
    found: dict[str, Any] = {}
    heading("", "queries", "as they stand", "put right", "change", "better", "worse", "p")
    for name in names or KINDS:
        task = task_of(name, data)
        base = bench.precisions(task, {"spelling": "off"})
        right = bench.precisions(task, {"spelling": "auto"})
        measures = compared(right, base)
        found[name] = {"off": base, "auto": right, "measures": measures}
        change = np.array(right) - np.array(base)
        row(
            name,
            len(base),
            f"{np.mean(base):.4f}",
            f"{np.mean(right):.4f}",
            percent(measures["gain"]),
            int((change > TIE).sum()),
            int((change < -TIE).sum()),
            f"{chance(right, base):.2f}",
        )
    print()
    heading("documents", "as by all", "otherwise")
    for size in SAMPLES:
        counted = [_sampled(bench, task_of(name, data), size) for name in names or KINDS]
        found[f"of {size}"] = np.sum(counted, axis=0).tolist()
        row(size, *found[f"of {size}"])
    return found


def _sampled(bench: Bench, task: Task, size: int) -> list[int]:
    """Count the words that a sample corrects as all documents do, and otherwise."""
    if size >= len(task.documents):
        return [0, 0]
    judged = {judgement.query_id for judgement in task.judgements}
    texts = [query.text for query in task.queries if query.id in judged][:_QUERIES]
    whole = bench.index(task, {})
    words = sorted({word for text in texts for word in whole.analyzer.map_words(text, str, str)})
    drawn = random.Random(1).sample(words, min(_WORDS, len(words)))
    by_all = [_corrected(whole, word) for word in drawn]
    few = random.Random(size).sample(list(task.documents), size)
    sample = bench.index(replace(task, documents=few, corpus=f"{task.name}-{size}"), {})
    counts = [0, 0]
    with patch.object(corrections, "MIN_DOCUMENTS", 0):
        for word, all_say in zip(drawn, by_all, strict=True):
            said = _corrected(sample, word)
            if said is not None and " " not in said:  # a word that is parted stays what it is
                counts[said != all_say] += 1
    return counts


def _corrected(index: Index, word: str) -> str | None:
    """What is searched in the place of a word, None if it is searched itself or not at all."""
    interpretation = index.search(word, 1, operators=False).interpretation
    right = interpretation.corrections.get(word)
    return None if right is None or interpretation.unknown else right.casefold()
