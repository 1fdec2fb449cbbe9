"""Runs, the ranking of each query, and measures of them by ir_measures with the code of trec_eval.

| name        | definition                                                       | judgements    |
|-------------|------------------------------------------------------------------|---------------|
| map         | mean average precision over the full ranking                     | grade above 0 |
| ndcg@10     | gain of the first ten, discounted by log2(rank + 1), normalised  | gain          |
| p@10        | share of relevant documents among the first ten                  | grade above 0 |
| recall@1000 | share of the relevant documents found among the first thousand   | grade above 0 |

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
from klsa_search.collection.model import Judgement, Topic
from klsa_search.collection.queries import checked_column
from klsa_search.core.array_types import Scores
from klsa_search.core.installation import require
from klsa_search.core.parameters import SearchParameters
from klsa_search.errors import CollectionError
from klsa_search.search.index import Index
from klsa_search.search.parts.reading import ids_of

_BATCH: Final = 4096  # queries whose rankings are in memory at a time
DEPTH: Final = 1000  # depth of a judged ranking, as usual in TREC


def rank_best(
    index: Index,
    queries: Sequence[Topic],
    k: int = DEPTH,
    *,
    threads: int = 1,
    **parameters: Unpack[SearchParameters],
) -> Iterator[Ranking]:
    """Yield the k best documents for each query, in order.

    Takes the parameters of `Index.rank_many`. Memory: some thousand queries at a time.
    """
    ids = ids_of(index.live_doc_ids(), index.ids())
    for begin in range(0, len(queries), _BATCH):
        batch = queries[begin : begin + _BATCH]
        texts = [query.text for query in batch]
        rankings = index.rank_many(texts, k, threads=threads, **parameters)
        for query, (doc_ids, scores) in zip(batch, rankings, strict=True):
            yield Ranking(query.id, tuple(ids(doc_ids)), scores)


_FILE = "a run file"
_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = np.finfo(np.float32).tiny  # normal number above 0


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
    rankings = []
    for query, by_document in by_query.items():
        ids = np.array(sorted(by_document, reverse=True), dtype=object)
        values = np.array([by_document[document] for document in ids], dtype=np.float32)
        order = np.argsort(-values, kind="stable")
        rankings.append(Ranking(query, tuple(ids[order]), values[order]))
    return rankings


def _score(digits: str, where: str) -> float:
    try:
        score = float(digits)
    except ValueError:
        raise CollectionError(f"{where}: the score {digits!r} is not a number; write one") from None
    if not abs(score) <= _LARGEST:  # also rejects NaN
        raise CollectionError(
            f"{where}: the score {digits} is beyond what 32 bits hold; scale the scores"
        )
    return score


def distinct_scores(scores: Scores) -> npt.NDArray[np.float32]:
    """Return scores as strictly descending 32-bit scores.

    scores  (n,)  not increasing, without NaN

    trec_eval keeps 32 bits and breaks ties by document ID. Each score is lowered by as few steps of
    the 32-bit grid as necessary; subnormal numbers are skipped, because some tools read them as 0.
    """
    distinct = scores.astype(np.float32)
    distinct[np.abs(distinct) < _SMALLEST] = 0
    above = np.float32(np.inf)
    for at, score in enumerate(distinct):
        if score >= above:
            score = np.nextafter(above, np.float32(-np.inf))
            if abs(score) < _SMALLEST:
                score = np.float32(0 if above > 0 else -_SMALLEST)
            distinct[at] = score
        above = score
    return distinct


MEASURES = ("map", "ndcg@10", "p@10", "recall@1000")
"""Names of the measures, in the order of the tables."""


@dataclass(frozen=True)
class RunMeasures:
    """Measures of a run, by judged query.

    queries   values by measure of each judged query, in the order of the judgements
    answered  number of judged queries with at least one document in the run
    """

    queries: Mapping[str, Mapping[str, float]]
    answered: int

    def values(self, measure: str) -> list[float]:
        """Return the values of one measure, by query, in the order of `queries`."""
        return [values[measure] for values in self.queries.values()]

    def means(self) -> dict[str, float]:
        """Return the mean of each measure over the judged queries."""
        names = next(iter(self.queries.values()))
        return {name: sum(self.values(name)) / len(self.queries) for name in names}


class Judge:
    """Judgements of one collection, prepared for measuring runs.

    measures  names of the measures to compute

    A query is judged if it has at least one judgement, relevant or not, as in trec_eval.
    Raise CollectionError if there are no judgements; MissingExtra without ir_measures (`eval`).
    """

    def __init__(self, judgements: Iterable[Judgement], measures: Sequence[str] = MEASURES) -> None:
        require("eval")
        import ir_measures

        relevant: dict[str, dict[str, int]] = {}
        gains: dict[str, dict[str, int]] = {}
        for judgement in judgements:
            query, document = judgement.query_id, judgement.document_id
            relevant.setdefault(query, {})[document] = int(judgement.grade > 0)
            gains.setdefault(query, {})[document] = judgement.gain
        if not relevant:
            raise CollectionError(
                "no relevance judgements; name a collection with queries and qrels"
            )
        self.measures = tuple(measures)
        self.query_ids = tuple(relevant)
        of_grade = {
            ir_measures.AP: "map",
            ir_measures.P @ 10: "p@10",
            ir_measures.R @ 1000: "recall@1000",
        }
        of_gain = {ir_measures.nDCG @ 10: "ndcg@10"}
        self._names = {m: n for m, n in {**of_grade, **of_gain}.items() if n in measures}
        provider = ir_measures.pytrec_eval
        self._evaluators = {
            query: [
                provider.evaluator(chosen, {query: qrels[query]})
                for qrels, of in ((relevant, of_grade), (gains, of_gain))
                if (chosen := [measure for measure in of if measure in self._names])
            ]
            for query in relevant
        }

    def judged(self, queries: Iterable[Topic]) -> list[Topic]:
        """Return the judged ones of some queries, in order."""
        return [query for query in queries if query.id in self._evaluators]

    def measure(self, run: Iterable[Ranking]) -> RunMeasures:
        """Return the measures of a run; missing queries count 0, unjudged ones are ignored.

        The run is read once; memory: one ranking.
        """
        judged = (ranking for ranking in run if ranking.query_id in self._evaluators)
        scores = {r.query_id: self.score(r) for r in judged if r.document_ids}
        zeros = dict.fromkeys(self.measures, 0.0)
        return RunMeasures(
            queries={query: scores.get(query, zeros) for query in self.query_ids},
            answered=len(scores),
        )

    def score(self, ranking: Ranking) -> dict[str, float]:
        """Return the measures of the ranking of one judged query; KeyError if it is not judged.

        Only the order counts: scores are replaced by descending integers, because trec_eval breaks
        ties by document ID. Exact for up to 2^24 documents. Cost: O(N log N).
        """
        ids = ranking.document_ids
        descending = {
            ranking.query_id: dict(zip(ids, map(float, range(len(ids), 0, -1)), strict=True))
        }
        values = {
            self._names[metric.measure]: float(metric.value)
            for evaluator in self._evaluators[ranking.query_id]
            for metric in evaluator.iter_calc(descending)
        }
        return {name: values[name] for name in self.measures}
