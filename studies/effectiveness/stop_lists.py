"""BM25 and the default over stop lists, stemmers and title weights.

Lists that are not a setting of the engine are taken out of the text before it sees it, and its own
list is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import stopwordsiso
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from klsa_search.collection import Document
from studies.effectiveness.measuring import (
    FOUR,
    TARGETS,
    Bench,
    Settings,
    Task,
    compared,
    heading,
    percent,
    row,
)

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision."""
    tasks = [Task.of_target(name, data) for name in TARGETS]
    heading("", *(f"{name}: BM25, default" for name in TARGETS), "mean gain of four")
    found: dict[str, Any] = {}
    for label, (settings, change) in _variants(data).items():
        changed = [replace(task, **change(task)) if change else task for task in tasks]
        base = {t.name: bench.precisions(t, {**settings, "ranker": "bm25"}) for t in changed}
        best = {t.name: bench.precisions(t, settings) for t in changed}
        measures = {name: compared(best[name], base[name]) for name in TARGETS}
        found[label] = {"settings": settings, "bm25": base, "default": best, "measures": measures}
        cells = (f"{np.mean(base[name]):.4f} {np.mean(best[name]):.4f}" for name in TARGETS)
        gain = float(np.mean([measures[name]["gain"] for name in FOUR]))
        row(label, *cells, percent(gain))
    return found


Change = Callable[[Task], dict[str, Any]]


def _variants(data: Path) -> dict[str, tuple[Settings, Change | None]]:
    none: Settings = {"stop_words": "none", "common_weight": 1.0}
    lists = {
        "stopwordsiso whole (1,298)": frozenset(stopwordsiso.stopwords("en")),
        "SMART (cacm's common_words)": _smart(data),
        "scikit-learn (318)": ENGLISH_STOP_WORDS,
    }
    return {
        "as shipped": ({}, None),
        "common words in full (Lucene, 33)": ({"common_weight": 1.0}, None),
        "long list left out": ({"stop_words": "long"}, None),
        "nothing left out": ({"stop_words": "none"}, None),
        "no stop words": (none, None),
        **{name: (none, partial(_stopped, words)) for name, words in lists.items()},
        "stemmer english (Porter2)": ({"stemmer": "english"}, None),
        "no stemmer": ({"stemmer": "none"}, None),
        **{f"title × {n}": ({"search": f"title^{n},text"}, None) for n in (1, 3)},
    }


def _smart(data: Path) -> frozenset[str]:
    return frozenset((data / "cacm" / "common_words").read_text("latin-1").lower().split())


def _stopped(words: frozenset[str], task: Task) -> dict[str, Any]:
    """Take the words out of documents and queries."""

    def clean(text: str) -> str:
        return _WORD.sub(lambda found: "" if found[0].lower() in words else found[0], text)

    return {
        "corpus": f"{task.corpus}-{len(words)}",
        "documents": [
            Document(id=d.id, title=clean(d.title), text=clean(d.text)) for d in task.documents
        ],
        "queries": [replace(query, text=clean(query.text)) for query in task.queries],
    }
