"""What vectors add: the default, an embedding model by itself, and both together.

Documents and queries are embedded by the ONNX model in the folder $KLSA_MODEL, once: the results
are kept in the folder $KLSA_VECTORS as NAME.npz with the arrays `docs` and `queries`. A document is
embedded as its title and text. `ranks` is the sum of 1 / (60 + rank) of both rankings.

The questions of `studies.front_page` were not used to choose a setting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import Index, build
from klsa_search.collection import Document, open_collection
from klsa_search.collection.vectors import quantised, set_vectors
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.embedding import open_embedder
from klsa_search.evaluation.measures import DEPTH, Judge, Ranking
from klsa_search.search.parts.reading import ids_of
from klsa_search.search.ranking.vector_ranking import (
    NEAREST,
    POWER,
    WEIGHT,
    moments_of,
    standardised,
)
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import (
    AS_WORDS,
    Bench,
    Precisions,
    Task,
    chance,
    compared,
    heading,
    percent,
    row,
)
from studies.front_page.__main__ import read_questions

SPACE: Final = "model"
QUESTIONS: Final = "python-docs"
NEWER: Final = ("drcd-zh", "jaquad-ja", "finna-fi")
"""Collections in languages that a model for English does not know."""

Floats = npt.NDArray[np.float64]


class Evidence(NamedTuple):
    """What is known about one query.

    words     (N,) scores by words
    standing  (N,) standardised cosines
    """

    words: Scores
    standing: Floats

    def scores(self) -> Scores:
        """Return the scores by words and vectors."""
        scale = WEIGHT * (float(self.words.max(initial=0)) or 1.0)
        parts = scale * (np.maximum(self.standing, 0) / 5) ** POWER
        nearest = np.zeros(len(parts), np.bool_)
        nearest[np.argsort(-parts, kind="stable")[:NEAREST]] = True
        return np.where(nearest | (self.words > 0), self.words + parts, 0).astype(np.float32)

    def by_ranks(self) -> Scores:
        """Return the sum of reciprocal ranks."""
        both = np.zeros(len(self.words))
        for scores in (self.words, self.standing):
            order = np.argsort(-scores, kind="stable")[:DEPTH]
            both[order] += 1 / (60 + np.arange(1, len(order) + 1))
        return both.astype(np.float32)


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these tasks."""
    found: dict[str, Any] = {}
    heading("", "BM25", "default", "vectors", "ranks", "both", "gain", "hurt", "p")
    for name in names or (*KINDS, *NEWER, QUESTIONS):
        if name == QUESTIONS:
            continue
        task = task_of(name, data)
        index = index_with_vectors(bench, task)
        evidence = _evidence(index, name, [query.text for query in task.queries])
        measure = partial(_precisions, task, ids_of(index.live_doc_ids(), index.ids()))
        default = measure([each.words for each in evidence])
        both = measure([each.scores() for each in evidence])
        found[name] = {
            "bm25": bench.precisions(task, {"ranker": "bm25"}),
            "default": default,
            "vectors": measure([(each.standing + 100).astype(np.float32) for each in evidence]),
            "ranks": measure([each.by_ranks() for each in evidence]),
            "both": both,
        }
        measures = compared(both, default)
        means = (f"{np.mean(precisions):.4f}" for precisions in found[name].values())
        hurt = f"{measures['hurt']:.0%}"
        row(name, *means, percent(measures["gain"]), hurt, f"{chance(both, default):.3f}")
    if found:
        gains = [np.mean(each["both"]) / np.mean(each["default"]) - 1 for each in found.values()]
        row("mean", "", "", "", "", "", percent(float(np.mean(gains))), "", "")
    if not names or QUESTIONS in names:
        print()
        found[QUESTIONS] = _questions()
    return found


def index_with_vectors(bench: Bench, task: Task) -> Index:
    """Return an index of a task whose documents have vectors."""
    vectors = vectors_of_study(task.name, task.documents, [each.text for each in task.queries])
    documents = [
        set_vectors(document, {SPACE: quantised(row)})
        for document, row in zip(task.documents, vectors["docs"], strict=True)
    ]
    return bench.index(Task(task.name, documents, task.queries, task.judgements, task.corpus), {})


def vectors_of_study(
    name: str, documents: Sequence[Document], queries: Sequence[str]
) -> Mapping[str, npt.NDArray[np.float32]]:
    """Return the vectors of documents and queries, embedded or stored before."""
    folder = os.environ.get("KLSA_VECTORS")
    path = Path(folder) / f"{name}.npz" if folder else None
    if path is not None and path.is_file():
        stored = np.load(path)
        return {"docs": stored["docs"], "queries": stored["queries"]}
    model = os.environ.get("KLSA_MODEL")
    if not model:
        raise SystemExit("name the folder of an ONNX model in KLSA_MODEL")
    embedder = open_embedder(f"onnx:{model}")
    texts = [f"{each.title}\n{each.text}".strip() for each in documents]
    vectors = {
        "docs": embedder.embed(texts, "document"),
        "queries": embedder.embed(queries, "query"),
    }
    if path is not None:
        np.savez(path, docs=vectors["docs"], queries=vectors["queries"])
    return vectors


def _evidence(index: Index, name: str, queries: Sequence[str]) -> list[Evidence]:
    """Return the evidence of each query."""
    vectors = vectors_of_study(name, [], queries)["queries"]
    snapshot, found = index.arrays, []
    for query, vector in zip(queries, vectors, strict=True):
        words = np.zeros(index.max_doc, np.float32)
        doc_ids, scores = index.rank(query, DEPTH, **AS_WORDS)
        words[doc_ids] = scores
        cosines = snapshot.vectors[SPACE].cosines(quantised(vector)[0], index.max_doc)
        found.append(Evidence(words, standardised(cosines, moments_of(cosines))))
    return found


def _precisions(
    task: Task, ids: Callable[[DocIds], npt.NDArray[Any]], scores: Sequence[Scores]
) -> Precisions:
    """Return the average precision of each judged query."""

    def rankings() -> Iterator[Ranking]:
        for query, row_ in zip(task.queries, scores, strict=True):
            order = np.argsort(-row_, kind="stable")[:DEPTH]
            order = order[row_[order] > 0]
            yield Ranking(query.id, tuple(ids(order)), row_[order])

    return Judge(task.judgements, measures=("map",)).measure(rankings()).values("map")


def _questions() -> dict[str, Any]:
    """Ask natural questions to the docstrings of Python: see `studies.front_page`."""
    questions = read_questions()
    documents = list(open_collection(QUESTIONS).documents())
    task = Task(QUESTIONS, documents, [], [])
    vectors = vectors_of_study(QUESTIONS, documents, [each.text for each in questions])
    with_vectors = [
        set_vectors(document, {SPACE: quantised(row_)})
        for document, row_ in zip(task.documents, vectors["docs"], strict=True)
    ]
    index = build(with_vectors, name=QUESTIONS, home=Path(os.environ["KLSA_VECTORS"]) / "index")
    evidence = _evidence(index, QUESTIONS, [each.text for each in questions])
    ids = ids_of(index.live_doc_ids(), index.ids())
    kinds: dict[str, list[Any]] = {
        "default": [each.words for each in evidence],
        "vectors": [each.standing + 100 for each in evidence],
        "ranks": [each.by_ranks() for each in evidence],
        "both": [each.scores() for each in evidence],
    }
    found: dict[str, Any] = {}
    heading("questions", "first", "within 3", "within 10", "within 100", "MRR")
    for kind, scores in kinds.items():
        ranks = [_rank(ids, s, q.answers) for s, q in zip(scores, questions, strict=True)]
        found[kind] = ranks
        counts = (sum(rank <= depth for rank in ranks if rank) for depth in (1, 3, 10, 100))
        reciprocal = sum(1 / rank for rank in ranks if rank) / len(ranks)
        row(kind, *counts, f"{reciprocal:.3f}")
    return found


def _rank(ids: Callable[[DocIds], npt.NDArray[Any]], scores: Any, answers: Sequence[str]) -> int:
    """Return the best rank of an answer, 0 beyond `DEPTH`."""
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    places = np.flatnonzero(np.isin(ids(order[scores[order] > 0]).astype(str), answers))
    return int(places[0]) + 1 if len(places) else 0
