"""Analytics of searches in the answers of a service."""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.core.analytics import Analytics, SynonymProposal

_ANALYTICS: Final = TypeAdapter(Analytics)
_PROPOSALS: Final = TypeAdapter(list[SynonymProposal])


def analytics_of(answer: Any) -> Analytics:
    """Return the analytics in an answer."""
    lists = {"days": "day", "queries": "query", "no_results": "query", "low_quality": "query"}
    by_key = {name: {row[key]: row for row in answer[name]} for name, key in lists.items()}
    return _ANALYTICS.validate_python({**answer, **by_key})


def proposals_of(answer: Any) -> list[SynonymProposal]:
    """Return the proposals of synonyms in an answer."""
    return _PROPOSALS.validate_python(answer["proposals"])
