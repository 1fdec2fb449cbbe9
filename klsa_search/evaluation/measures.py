"""Measures of rankings, computed by ir_measures with the code of trec_eval.

| name        | definition                                                       | judgements    |
|-------------|------------------------------------------------------------------|---------------|
| map         | mean average precision over the full ranking                     | grade above 0 |
| ndcg@10     | gain of the first ten, discounted by log2(rank + 1), normalised  | gain          |
| p@10        | share of relevant documents among the first ten                  | grade above 0 |
| recall@1000 | share of the relevant documents found among the first thousand   | grade above 0 |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from klsa_search.collection.model import Judgement, Topic
from klsa_search.core.extras import require
from klsa_search.errors import CollectionError
from klsa_search.evaluation.runs import Ranking

MEASURES = ("map", "ndcg@10", "p@10", "recall@1000")
"""Names of the measures, in the order of the tables."""


@dataclass(frozen=True)
class Measured:
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

    def measure(self, run: Iterable[Ranking]) -> Measured:
        """Return the measures of a run; missing queries count 0, unjudged ones are ignored.

        The run is read once; memory: one ranking.
        """
        judged = (ranking for ranking in run if ranking.query_id in self._evaluators)
        scores = {r.query_id: self.score(r) for r in judged if r.document_ids}
        zeros = dict.fromkeys(self.measures, 0.0)
        return Measured(
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
