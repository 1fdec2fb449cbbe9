"""Runs: the ranking of each query, in memory and in TREC run files.

A run file has six columns a line, `query Q0 document rank score tag`, ranks from 1. Reading it
ignores the ranks and uses the scores, as trec_eval does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Unpack

import numpy as np
import numpy.typing as npt

from klsa_search.collection.lines import checked_lines
from klsa_search.collection.model import Topic
from klsa_search.collection.qrels import checked_column
from klsa_search.core.array_types import Scores
from klsa_search.core.keywords import SearchParameters
from klsa_search.errors import CollectionError
from klsa_search.search.index import Index
from klsa_search.search.parts.doc_ids import ids_of

_BATCH: Final = 4096
"""Queries whose rankings are in memory at a time."""


DEPTH: Final = 1000
"""Depth of a judged ranking, as usual in TREC."""


def rank_best(
    index: Index,
    queries: Sequence[Topic],
    k: int = DEPTH,
    *,
    threads: int = 1,
    dimensions: int | None = None,
    **parameters: Unpack[SearchParameters],
) -> Iterator[Ranking]:
    """Yield the k best documents for each query, in order.

    Takes the parameters of `Index.rank_many`. Memory: some thousand queries at a time.
    """
    ids = ids_of(index.live_doc_ids(), index.ids())
    for begin in range(0, len(queries), _BATCH):
        batch = queries[begin : begin + _BATCH]
        texts = [query.text for query in batch]
        rankings = index.rank_many(texts, k, threads=threads, dimensions=dimensions, **parameters)
        for query, (doc_ids, scores) in zip(batch, rankings, strict=True):
            yield Ranking(query.id, tuple(ids(doc_ids)), scores)


_FILE = "a run file"
_LARGEST = float(np.finfo(np.float32).max)
_SUBNORMAL = 0x7FFFFF
"""Number of 32-bit floats between 0 and the smallest normal one."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranking of one query, best document first; a run is an iterable of rankings.

    `document_ids` and `scores` have one entry per document; `scores` do not increase.
    """

    query_id: str
    document_ids: tuple[str, ...]
    scores: Scores


def recorded(run: Iterable[Ranking], path: Path, tag: str) -> Iterator[Ranking]:
    """Yield the rankings of a run, and write them to a file, which is complete at the end.

    Scores are made distinct, so that tools that sort by score keep the order: see
    `distinct_scores`. Raise CollectionError for an ID with white space; OSError.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for ranking in run:
            query = checked_column(ranking.query_id, _FILE)
            scores = distinct_scores(ranking.scores).tolist()
            rows = zip(ranking.document_ids, scores, strict=True)
            file.writelines(
                # Nine digits identify a 32-bit float.
                f"{query} Q0 {checked_column(document, _FILE)} {rank} {score:.9g} {tag}\n"
                for rank, (document, score) in enumerate(rows, start=1)
            )
            yield ranking


def read_run(path: Path) -> list[Ranking]:
    """Return the rankings of a run file, plain or gzip, in the order of their first lines.

    Documents are sorted as by trec_eval: by 32-bit score, then by ID, both descending; the order of
    lines and the rank column are ignored, and so are blank lines. Raise CollectionError, with file
    and line, for an invalid line or score, or a document that occurs twice for a query. Memory: the
    whole run.
    """
    by_query: dict[str, dict[str, float]] = {}
    for where, line in checked_lines(path):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 6:
            raise CollectionError(
                f"{where}: {len(columns)} columns; a run has 6: query Q0 document rank score tag"
            )
        query, _, document, _, score, _ = columns
        scores = by_query.setdefault(query, {})
        if document in scores:
            raise CollectionError(
                f"{where}: document {document} appears twice for query {query}; keep one"
            )
        scores[document] = _score(score, where)
    return [_sorted(query, scores) for query, scores in by_query.items()]


def _score(digits: str, where: str) -> float:
    try:
        score = float(digits)
    except ValueError:
        raise CollectionError(f"{where}: the score {digits!r} is not a number") from None
    if not abs(score) <= _LARGEST:  # also rejects NaN
        raise CollectionError(f"{where}: the score {digits} is not a number that 32 bits can hold")
    return score


def _sorted(query: str, by_document: Mapping[str, float]) -> Ranking:
    ids = np.array(sorted(by_document, reverse=True), dtype=object)
    scores = np.array([by_document[document] for document in ids], dtype=np.float32)
    order = np.argsort(-scores, kind="stable")
    return Ranking(query, tuple(ids[order]), scores[order])


def distinct_scores(scores: Scores) -> npt.NDArray[np.float32]:
    """Return scores as strictly descending 32-bit scores.

    scores  (n,)  not increasing, without NaN

    trec_eval keeps 32 bits and breaks ties by document ID. Each score is lowered by as few steps of
    the 32-bit grid as necessary; subnormal numbers are skipped, because some tools read them as 0.
    """
    steps = _steps(scores.astype(np.float32))
    ranks = np.arange(len(steps))
    # s'_i = min(s_i, s'_{i-1} - 1), without a loop.
    return _values(np.minimum.accumulate(steps + ranks) - ranks)


def _steps(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the position of normal 32-bit floats in their order, 0 at 0."""
    bits = np.abs(values).view(np.int32).astype(np.int64)
    magnitude = np.maximum(bits - _SUBNORMAL, 0)
    return np.where(values < 0, -magnitude, magnitude)


def _values(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the floats of positions; inverse of `_steps`."""
    bits = np.where(steps == 0, 0, np.abs(steps) + _SUBNORMAL).astype(np.int32)
    magnitude = bits.view(np.float32)
    return np.where(steps < 0, -magnitude, magnitude)
