"""Suggestions of an index: completions of typed text, each with the documents it finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from klsa_search.core.arguments import checked_argument
from klsa_search.core.parameters import MatchName
from klsa_search.search.engine.evidence import Evidence, Question, added
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.parts import reading
from klsa_search.search.parts.merged_search import count_documents
from klsa_search.search.parts.reader import Reader
from klsa_search.search.query.query import Query
from klsa_search.search.ranking.parameters import checked_integer
from klsa_search.search.suggest.suggester import Candidate, Suggestion

_COUNTED: Final = 3
"""Candidates of which the documents are counted, for each suggestion, at most."""


def suggest(
    reader: Reader,
    typed: str,
    k: int = 10,
    *,
    filter: FilterLike | None = None,  # noqa: A002 - as in `search`
    match: MatchName = "all",
) -> tuple[Suggestion, ...]:
    """Return at most k completions of the typed text: words, phrases, titles and IDs.

    filter  only documents that match it count: that of the searches which follow
    match   how searches that follow match words: `documents` is the total of a search for
            `query` with this `match` and `filter`, without vectors of an embedder
    Suggestions are words that begin with the last typed word, most frequent first; terms that
    follow the typed words in at least two documents; titles that contain the text, those that
    begin with it first; and IDs with a digit that contain it. If no word begins with the last
    one, it is corrected. A document contains all words of each of them. A blank text has no
    suggestions. QueryError. See `docs/guides/search.md`. Cost: a search for each suggestion.

    >>> suggestions = index.suggest("tyr")
    >>> [(one.kind, one.text, one.documents) for one in suggestions]
    [('word', 'tyres', 3), ('title', 'Tyres', 3), ('title', 'Tyres again', 1)]
    >>> [suggestion.documents for suggestion in index.suggest("tyr", filter="year >= 2024")]
    []
    """
    checked_argument("q", typed, str)
    k = checked_integer("k", k)
    reader = reader.view()
    kinds = _candidates(reader, typed, k, filter)
    taken: list[list[Suggestion]] = [[] for _ in kinds]
    queries: set[str] = set()
    left, active = _COUNTED * k, list(range(len(kinds)))
    while active:
        for kind in active[:]:
            if len(queries) == k or not left:
                return tuple(chain.from_iterable(taken))
            candidate = next((one for one in kinds[kind] if one.query not in queries), None)
            if candidate is None:
                active.remove(kind)
                continue
            left -= 1
            count = count_documents(reader, Query(candidate.query, 1, filter=filter, match="all"))
            if count:
                if match != "all":
                    query = Query(candidate.query, 1, filter=filter, match=match)
                    count = count_documents(reader, query)
                queries.add(candidate.query)
                taken[kind].append(Suggestion(**candidate._asdict(), documents=count))
    return tuple(chain.from_iterable(taken))


def _candidates(
    reader: Reader, typed: str, k: int, filter_: FilterLike | None
) -> Sequence[Iterator[Candidate]]:
    parts, answers = reader.parts.parts, dict[Question, object]()
    if (state := reader.parts.only_state) is not None:  # found when they are read
        return state.suggester_within(filter_).candidates(typed, k, Evidence())
    while True:
        kinds, asked = zip(
            *(part.read(reading.candidates, answers, typed, k, filter_) for part in parts),
            strict=True,
        )
        if not any(asked):
            return [iter(kind) for kind in kinds[0]]
        answers |= added(asked)
