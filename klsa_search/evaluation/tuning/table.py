"""What every candidate scores on every query: all that choosing needs to know."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from klsa_search.collection import Query
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.rankings import rank_best
from klsa_search.evaluation.tuning.space import Candidate
from klsa_search.indexing import build_like
from klsa_search.indexing.layout import layout
from klsa_search.progress import Progress
from klsa_search.search.index import Index

Table = npt.NDArray[np.float64]
"""(Q, C): the value of a measure, one row a judged query, one column a candidate."""


def measure_candidates(
    index: Index,
    candidates: Sequence[Candidate],
    queries: Sequence[Query],
    judge: Judge,
    *,
    progress: Progress | None = None,
) -> Table:
    """Measure each candidate by the first measure of the judge; a query without an answer holds 0.

    `progress` gets ("candidates", done, total). Cost: C runs over the queries, and a build in
    a folder that goes away for each (k1, b) that is not the index's own, and for its own where
    the index keeps D cut, which knows one spectral function only. Such builds hold no D: a
    candidate is searched in its factors. OSError if there is no room for them.
    """
    own = (index.settings.k1, index.settings.b)
    cut = layout(len(index), index.settings) == "sparse"
    judged = frozenset(judge.query_ids)
    asked = [query for query in queries if query.id in judged]
    table = np.zeros((len(judge.query_ids), len(candidates)))
    done = 0
    with tempfile.TemporaryDirectory(prefix="klsa-tune-") as home:
        for lengths in dict.fromkeys(candidate.lengths for candidate in candidates):
            k1, b = lengths
            searched = (
                index
                if lengths == own and not cut
                else build_like(
                    index, home=Path(home), name="candidate", k1=k1, b=b, expansion="factored"
                )
            )
            for column, candidate in enumerate(candidates):
                if candidate.lengths == lengths:
                    run = rank_best(searched, asked, **candidate.parameters)
                    table[:, column] = judge.measure(run).values(judge.measures[0])
                    done += 1
                    if progress is not None:
                        progress("candidates", done, len(candidates))
            if searched is not index:
                searched.close()
    return table
