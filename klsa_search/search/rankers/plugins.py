"""Rankers of plug-ins, whose results are checked."""

from __future__ import annotations

import numpy as np

from klsa_search.core.array_types import Scores
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import KlsaError, PluginFailed
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.rankers.reader import IndexReader, RankFunction


def plugin_ranker(name: str) -> RankFunction:
    """Return the ranker of a plug-in; it raises PluginFailed if it fails, or its result is invalid.

    Without a known term in the query every score is 0.
    """
    rank = load_plugin("ranker", name)
    if not callable(rank):
        raise PluginFailed(f"ranker `{name}` is not a function; name a function", field="ranker")

    def checked(reader: IndexReader, query: QueryTerms) -> Scores:
        if not len(query.numbers):
            return np.zeros(reader.max_doc, np.float32)
        try:
            scores = np.asarray(rank(reader, query), np.float32)
        except KlsaError:  # such as RequestTimedOut
            raise
        except Exception as error:  # code of another package may raise anything
            raise PluginFailed(
                f"ranker `{name}` failed ({type(error).__name__}: {error}); correct it",
                field="ranker",
            ) from error
        if scores.shape != (reader.max_doc,) or not np.isfinite(scores).all():
            raise PluginFailed(
                f"ranker `{name}` returned scores of shape {scores.shape}, or not finite; it must "
                f"return {reader.max_doc:,} finite numbers, one for each doc id",
                field="ranker",
            )
        return scores

    return checked
