"""An index judged by its own judgements: what people said of its hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klsa_search.collection import Judgement, Query
from klsa_search.config import RankerName
from klsa_search.errors import CollectionError
from klsa_search.evaluation.comparison import Comparison, compare
from klsa_search.evaluation.measures import Judge, Measured
from klsa_search.evaluation.rankings import rank_best
from klsa_search.search.index import Index


def own_judgements(index: Index) -> tuple[list[Query], list[Judgement], int]:
    """Return the judged queries of an index, its judgements, and the number of those left out.

    Judgements of deleted documents are left out. CollectionError if there are no others.
    """
    judged = index.judgements.queries()
    held = set(index.ids())
    said = [judgement for each in judged for judgement in each.judgements()]
    kept = [each for each in said if each.document_id in held]
    if not kept:
        others = f", only {len(said):,} of deleted documents" if said else ""
        raise CollectionError(
            f"index `{index.name}` has no judgements{others}; judge hits on its "
            "page, or with index.judge(query, id, grade)"
        )
    queries = [Query(id=str(each.number), text=each.text) for each in judged]
    return queries, kept, len(said) - len(kept)


def compare_rankers(
    index: Index,
    queries: Sequence[Query],
    judgements: Sequence[Judgement],
    rankers: Sequence[RankerName],
) -> tuple[Mapping[str, Measured], Comparison]:
    """Return measures of rankers of an index, and a comparison of their MAP with that of the first.

    Each ranker returns the best 1,000 documents for each judged query. MissingExtra without the
    extra `eval`.
    """
    judge = Judge(judgements)
    judged = set(judge.query_ids)
    asked = [query for query in queries if query.id in judged]
    measured: dict[str, Measured] = {
        ranker: judge.measure(rank_best(index, asked, ranker=ranker)) for ranker in rankers
    }
    return measured, compare(measured, target=index.name, measure="map", baseline=rankers[0])
