"""What passages of long documents gain: documents by themselves, and with their best passage.

A document scores s(d) + w max s(p). For passages of 300 words and each weight w, MAP and nDCG@10 of
BM25 and the default are compared with those of w = 0. At most 300 queries of each collection.
Articles are the Wikipedia articles whose paragraphs are the documents of a collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from klsa_search import Index
from klsa_search.collection import Document
from klsa_search.collection.model import Topic
from klsa_search.evaluation.measures import DEPTH, Judge, Ranking
from klsa_search.search.parts.reading import ids_of
from klsa_search.storage.passages import passages_of
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import AS_WORDS, Bench, Task, heading, percent, row

COLLECTIONS: Final = (
    "time",
    "awsdocs",
    "medquad",
    "cisi",
    "jaquad-ja-articles",
    "drcd-zh-articles",
)
WORDS: Final = 300
WEIGHTS: Final = (0.5, 1.0)

QUERIES: Final = 300
ARTICLES: Final = "-articles"

Ranker = Literal["bm25", "klsa"]
RANKERS: Final[dict[Ranker, str]] = {"bm25": "BM25", "klsa": "default"}
_MEASURES: Final = {"map": "MAP", "ndcg@10": "nDCG@10"}

Means = Mapping[str, float]


class Span(NamedTuple):
    """A paragraph in an article."""

    article: str
    begin: int
    end: int


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has all means. `names`: only these collections."""
    figures: dict[str, Any] = {}
    gains = [("map", 0.5), ("map", 1.0), ("ndcg@10", 1.0)]
    whole = (f"{measure}, whole" for measure in _MEASURES.values())
    of_gains = (f"{_MEASURES[measure]}, w = {weight:g}" for measure, weight in gains)
    heading("", "ranking", "queries", "passages a document", *whole, *of_gains)
    for name in names or COLLECTIONS:
        task = task_with_articles(name, data)
        index = bench.index(task, {"passages": str(WORDS)})
        count = sum(1 for document in task.documents for _ in passages_of(document, WORDS))
        per_document = count / len(task.documents)
        figures[name] = {"queries": len(task.queries), "passages": per_document}
        for ranker, label in RANKERS.items():
            means = figures[name][ranker] = _means(index, task, ranker)
            row(
                name.replace(ARTICLES, ", articles"),
                label,
                len(task.queries),
                f"{per_document:.2f}",
                *(f"{means['0'][measure]:.4f}" for measure in _MEASURES),
                *(
                    percent(means[f"{weight:g}"][measure] / means["0"][measure] - 1)
                    for measure, weight in gains
                ),
            )
    return figures


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
    judge = Judge(task.judgements, measures=tuple(_MEASURES))
    weights = (0.0, *WEIGHTS)
    runs: list[list[Ranking]] = [[] for _ in weights]
    ids = ids_of(index.live_doc_ids(), index.ids())
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
