"""Runs: for each query the ranking of the documents; and the files that carry them.

A run file is TREC's: six columns a line, `query Q0 document rank score tag`, ranks from 1.
What reads it back goes by the scores alone, as trec_eval does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Scores
from klsa_search.collection.intake import text_fault
from klsa_search.collection.lines import lines
from klsa_search.collection.qrels import column
from klsa_search.errors import CollectionError

_FILE = "a run file"
_LARGEST = float(np.finfo(np.float32).max)
_SUBNORMAL = 0x7FFFFF
"""How many 32-bit floats lie between 0 and the smallest normal one."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answer to one query: documents best first; a run is an iterable of these.

    `document_ids` and `scores` have one entry a document; `scores` never rise.
    """

    query_id: str
    document_ids: tuple[str, ...]
    scores: Scores


def recorded(run: Iterable[Ranking], path: Path, tag: str) -> Iterator[Ranking]:
    """Pass a run on, writing it to a run file on the way; the file is whole once the run has ended.

    Any tool that sorts by score finds our order in it, ties included: see `told_apart`.
    CollectionError for an id with white space, which the format cannot hold; OSError.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for ranking in run:
            query = column(ranking.query_id, _FILE)
            scores = told_apart(ranking.scores).tolist()
            answers = zip(ranking.document_ids, scores, strict=True)
            file.writelines(
                # Nine digits are what it takes to read back the same 32-bit float.
                f"{query} Q0 {column(document, _FILE)} {rank} {score:.9g} {tag}\n"
                for rank, (document, score) in enumerate(answers, start=1)
            )
            yield ranking


def read_run(path: Path) -> list[Ranking]:
    """Read a run file, plain or gzip, into one ranking a query, in the order of their first lines.

    Documents are sorted as trec_eval sorts them, by score in 32 bits and then by id, both
    descending; the order of the lines and the ranks they claim count for nothing. Blank lines are
    passed over. CollectionError names file and line of what is no such line, of a score that is no
    number or too large, and of a document that a query is given twice. Memory: the whole run.
    """
    found: dict[str, dict[str, float]] = {}
    for number, line in lines(path):
        where = f"{path}:{number}"
        fault = text_fault(line)
        if fault:
            raise CollectionError(f"{where}: the line {fault}; correct it")
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 6:
            raise CollectionError(
                f"{where}: {len(columns)} columns; a run has 6: query Q0 document rank score tag"
            )
        query, _, document, _, score, _ = columns
        answers = found.setdefault(query, {})
        if document in answers:
            raise CollectionError(
                f"{where}: document {document} appears twice for query {query}; keep one"
            )
        answers[document] = _score(score, where)
    return [_sorted(query, answers) for query, answers in found.items()]


def _score(digits: str, where: str) -> float:
    try:
        score = float(digits)
    except ValueError:
        raise CollectionError(f"{where}: the score {digits!r} is not a number") from None
    if not abs(score) <= _LARGEST:  # nan is not either
        raise CollectionError(f"{where}: the score {digits} is not a number that 32 bits can hold")
    return score


def _sorted(query: str, answers: Mapping[str, float]) -> Ranking:
    ids = np.array(sorted(answers, reverse=True), dtype=object)
    scores = np.array([answers[document] for document in ids], dtype=np.float32)
    order = np.argsort(-scores, kind="stable")
    return Ranking(query, tuple(ids[order]), scores[order])


def told_apart(scores: Scores) -> npt.NDArray[np.float32]:
    """Turn scores that never rise into 32-bit scores that fall at every step.

    trec_eval keeps 32 bits and breaks ties by document id. Each score moves down by as few steps
    of the 32-bit grid as it takes; subnormal numbers are passed over, since some tools read them
    as 0.

    scores  (n,)  never rising, no NaN
    """
    steps = _steps(scores.astype(np.float32))
    places = np.arange(len(steps))
    # s'_i = min(s_i, s'_{i-1} - 1), without a loop.
    return _values(np.minimum.accumulate(steps + places) - places)


def _steps(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Number the normal 32-bit floats in order, 0 at 0."""
    bits = np.abs(values).view(np.int32).astype(np.int64)
    magnitude = np.maximum(bits - _SUBNORMAL, 0)
    return np.where(values < 0, -magnitude, magnitude)


def _values(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Undo `_steps`."""
    bits = np.where(steps == 0, 0, np.abs(steps) + _SUBNORMAL).astype(np.int32)
    magnitude = bits.view(np.float32)
    return np.where(steps < 0, -magnitude, magnitude)
