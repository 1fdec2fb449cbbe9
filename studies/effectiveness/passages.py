"""What passages of long documents gain: documents by themselves, and with their best passage.

A document scores s(d) + w max s(p). For each number of words of a passage and each weight w, MAP
and nDCG@10 of BM25 and the default are compared with those of w = 0. Size and weight are also
chosen on all collections but one, and the gain is reported on that one. At most 300 queries of each
collection. Articles are the Wikipedia articles whose paragraphs are the documents of a collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from klsa_search import Index
from klsa_search.collection import Document
from klsa_search.collection.model import Topic
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import AS_WORDS, DEPTH, Ranking
from klsa_search.search.index import ids_of
from klsa_search.storage.passages import passages_of
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Bench, Task, heading, percent, row

COLLECTIONS: Final = (
    "time",
    "awsdocs",
    "medquad",
    "cisi",
    "jaquad-ja-articles",
    "drcd-zh-articles",
)
SIZES: Final = (200, 300, 400)
WEIGHTS: Final = (0.25, 0.35, 0.5, 0.7, 1.0)
DEFAULT: Final = (300, 1.0)
"""Words of a passage, and weight, whose gains are printed for each measure."""

QUERIES: Final = 300
ARTICLES: Final = "-articles"
_MOST_LOST: Final = -0.005

Ranker = Literal["bm25", "klsa"]
RANKERS: Final[tuple[Ranker, ...]] = ("bm25", "klsa")
_MEASURES: Final = ("map", "ndcg@10")

Means = Mapping[str, float]
Point = tuple[int, float]
"""Words of a passage, and weight."""


class Span(NamedTuple):
    """A paragraph in an article."""

    article: str
    begin: int
    end: int


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has all means. `names`: only these collections."""
    found: dict[str, Any] = {}
    heading("", "ranker", "queries", "passages", *(f"{m}, whole" for m in _MEASURES), *_MEASURES)
    for name in names or COLLECTIONS:
        task = task_with_articles(name, data)
        found[name] = {"queries": len(task.queries), "documents": len(task.documents)}
        for size in SIZES:
            index = bench.index(task, {"passages": str(size)})
            count = sum(1 for each in task.documents for _ in passages_of(each, size))
            measured: dict[str, Any] = {r: _means(index, task, r) for r in RANKERS}
            found[name][str(size)] = {"passages": count / len(task.documents), **measured}
        for ranker in RANKERS:
            of_size = found[name][str(DEFAULT[0])]
            means = of_size[ranker]
            row(
                name,
                ranker,
                len(task.queries),
                f"{of_size['passages']:.2f}",
                *(f"{means['0'][measure]:.4f}" for measure in _MEASURES),
                *(percent(_gain(means, DEFAULT[1], measure)) for measure in _MEASURES),
            )
    print()
    _print_grid(found)
    if len(found) > 1:
        print()
        found["chosen"] = _choices(found)
    return found


def task_with_articles(name: str, data: Path) -> Task:
    """Return the task of a collection, or of the articles of one, with the first queries."""
    task = task_of(name.removesuffix(ARTICLES), data)
    if name.endswith(ARTICLES):
        documents, spans = articles(task.documents)
        judgements = [
            replace(each, document_id=spans[each.document_id].article)
            for each in task.judgements
            if each.grade > 0
        ]
        task = replace(task, name=name, corpus=name, documents=documents, judgements=judgements)
    judged = {each.query_id for each in task.judgements}
    queries = [query for query in task.queries if query.id in judged][:QUERIES]
    kept = {query.id for query in queries}
    judgements = [each for each in task.judgements if each.query_id in kept]
    return replace(task, queries=queries, judgements=judgements)


def articles(paragraphs: Sequence[Document]) -> tuple[list[Document], dict[str, Span]]:
    """Return articles, of paragraphs with the same title, and the span of each paragraph by ID."""
    texts: dict[str, str] = {}
    spans: dict[str, Span] = {}
    for each in paragraphs:
        text = texts.get(each.title, "")
        begin = len(text) + 2 if text else 0
        texts[each.title] = f"{text}\n\n{each.text}" if text else each.text
        spans[each.id] = Span(each.title, begin, begin + len(each.text))
    return [Document(id=title, title=title, text=text) for title, text in texts.items()], spans


def _means(index: Index, task: Task, ranker: Ranker) -> dict[str, Means]:
    """Return the means of all measures for each weight, and for 0."""
    judge = Judge(task.judgements, measures=_MEASURES)
    weights = (0.0, *WEIGHTS)
    runs: list[list[Ranking]] = [[] for _ in weights]
    ids = ids_of(index)
    for query in task.queries:
        own, best = _scores(index, query, ranker)
        for run, weight in zip(runs, weights, strict=True):
            scores = own + np.float32(weight) * best
            order = np.argsort(-scores, kind="stable")[:DEPTH]
            order = order[own[order] > 0]
            run.append(Ranking(query.id, tuple(ids(order)), scores[order]))
    measured = (judge.measure(iter(run)).means() for run in runs)
    return {f"{weight:g}": dict(means) for weight, means in zip(weights, measured, strict=True)}


def _scores(index: Index, query: Topic, ranker: Ranker) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of documents by themselves, and those of their best passages."""
    own = index.scores(query.text, ranker=ranker, passage_weight=0, **AS_WORDS)
    both = index.scores(query.text, ranker=ranker, passage_weight=1, **AS_WORDS)
    return own, both - own


def _gain(means: Mapping[str, Means], weight: float, measure: str = "map") -> float:
    return means[f"{weight:g}"][measure] / means["0"][measure] - 1


def _points() -> Iterator[Point]:
    return ((size, weight) for size in SIZES for weight in WEIGHTS)


def _gains(of_collection: Mapping[str, Any], point: Point) -> list[float]:
    """Return the gains of MAP of both rankers."""
    size, weight = point
    return [_gain(of_collection[str(size)][ranker], weight) for ranker in RANKERS]


def _print_grid(found: Mapping[str, Any]) -> None:
    """Print the gain of MAP of BM25 and the default at each point."""
    heading("words", "w", *found, "mean", "least")
    for size, weight in _points():
        gains = [_gains(each, (size, weight)) for each in found.values()]
        cells = (", ".join(map(percent, pair)) for pair in gains)
        row(size, weight, *cells, percent(float(np.mean(gains))), percent(float(np.min(gains))))


def _choices(found: Mapping[str, Any]) -> dict[str, Any]:
    """Choose on all collections but one: the best mean gain of those that nowhere lose much."""
    chosen: dict[str, Any] = {}
    heading("left out", "words", "w", "gain of the others", "BM25", "default")
    for left_out in [*found, ""]:
        gains = {
            point: np.array([_gains(found[n], point) for n in found if n != left_out])
            for point in _points()
        }
        point = max(gains, key=lambda each: (gains[each].min() >= _MOST_LOST, gains[each].mean()))
        own = _gains(found[left_out], point) if left_out else []
        chosen[left_out or "none"] = {"point": point, "gains": own}
        cells = map(percent, own) if own else ("", "")
        row(left_out or "none", *point, percent(float(gains[point].mean())), *cells)
    return chosen
