"""What a search box gains by completing the last word, and by correcting short words.

Queries are made of titles, and the document of the title has to be found. Typing: the first two to
four words, of which the last is cut after some letters, or complete. Typing errors: the rarest word
of three to five letters of a title, with one letter missing, added, wrong or swapped.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search import Index
from klsa_search.collection import Document
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import Bench, heading, row

LETTERS: Final = (2, 3, 4, 6, None)
"""Letters of the last word that are typed; None for all."""

_QUERIES: Final = 300
_DEPTH: Final = 10
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"

Query = tuple[str, str]
"""A text, and the ID of the document to find."""


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the figures of each collection. `names`: only these."""
    found: dict[str, Any] = {}
    measures = [f"{name} {letters or 'all'}" for letters in LETTERS for name in ("off", "last")]
    heading("", "titles", *measures)
    for name in names or KINDS:
        task = task_of(name, data)
        titled = [document for document in task.documents if len(document.title.split()) > 1]
        if not titled:
            continue
        index = bench.index(task, {})
        typed = {letters: _typed(titled, letters) for letters in LETTERS}
        found[name] = {
            f"{prefix or 'off'} {letters or 'all'}": _found(index, queries, prefix=prefix)
            for letters, queries in typed.items()
            for prefix in (None, "last")
        }
        cells = (f"{mrr:.3f} ({success:.0%})" for mrr, success in found[name].values())
        row(name, len(typed[None]), *cells)
    print()
    heading("", "words", "without", "with", "corrected right", "otherwise")
    for name in found:
        task = task_of(name, data)
        index = bench.index(task, {})
        queries = _misspelt(index, task.documents)
        if not queries:
            continue
        texts = [(text, id_) for text, id_, _ in queries]
        right = wrong = 0
        for text, _, word in queries:
            results = index.search(text, 1)
            if results.hits and not results.interpretation.unknown:
                meant = results.interpretation.corrections.get(text, "")
                same = index.analyzer.term(meant.casefold()) == index.analyzer.term(word)
                right, wrong = right + same, wrong + (not same)
        found[name]["short"] = {
            "without": _ranked(index, texts),
            "with": _found(index, texts),
            "right": right,
            "wrong": wrong,
        }
        short = found[name]["short"]
        cells = (f"{mrr:.3f} ({success:.0%})" for mrr, success in (short["without"], short["with"]))
        row(name, len(queries), *cells, right, wrong)
    return found


def _typed(documents: Sequence[Document], letters: int | None) -> list[Query]:
    """The beginnings of titles; the last word has more than these letters."""
    made = random.Random(1)
    queries = []
    for document in made.sample(list(documents), min(len(documents), _QUERIES)):
        words = re.findall(r"\w+", document.title.lower())
        places = [at for at in range(1, min(4, len(words))) if len(words[at]) > (letters or 2)]
        if places:
            at = made.choice(places)
            queries.append((" ".join([*words[:at], words[at][:letters]]), document.id))
    return queries


def _misspelt(index: Index, documents: Sequence[Document]) -> list[tuple[str, str, str]]:
    """Misspelt short words that no document contains, the document of each, and the word."""
    made = random.Random(2)
    queries = []
    frequencies = Counter(
        word for each in documents for word in set(re.findall(r"[a-z]+", each.title.lower()))
    )
    for document in documents:
        words = [w for w in re.findall(r"[a-z]+", document.title.lower()) if 3 <= len(w) <= 5]
        if words:
            word = min(words, key=lambda each: (frequencies[each], each))
            typo = _with_typo(word, made)
            if index.query_counts(typo, spelling="auto").misspelt:
                queries.append((typo, document.id, word))
    return made.sample(queries, min(len(queries), _QUERIES))


def _with_typo(word: str, made: random.Random) -> str:
    """The word with one letter missing, added, wrong or swapped, after the first."""
    at = made.randrange(1, len(word))
    kind = made.choice(["missing", "added", "wrong", "swapped"])
    letter = made.choice(_ALPHABET)
    if kind == "swapped" and at + 1 < len(word):
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == "missing":
        return word[:at] + word[at + 1 :]
    return word[:at] + letter + (word[at:] if kind == "added" else word[at + 1 :])


def _found(index: Index, queries: Sequence[Query], **options: Any) -> tuple[float, float]:
    """Mean reciprocal rank, and the share of queries that find their document among ten."""
    return _measured(
        [([hit.id for hit in index.search(text, _DEPTH, **options)], id_) for text, id_ in queries]
    )


def _ranked(index: Index, queries: Sequence[Query]) -> tuple[float, float]:
    """The same by `Index.rank`, which corrects no short words."""
    texts = [text for text, _ in queries]
    return _measured(
        [
            (index.ids(doc_ids), id_)
            for (doc_ids, _), (_, id_) in zip(index.rank_many(texts, _DEPTH), queries, strict=True)
        ]
    )


def _measured(rankings: Sequence[tuple[list[str], str]]) -> tuple[float, float]:
    ranks = np.array([ids.index(id_) + 1 if id_ in ids else np.inf for ids, id_ in rankings])
    return float((1 / ranks).mean()), float(np.isfinite(ranks).mean())
