"""An index of a service, with the interface of a local one for the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from klsa_search.client.blocking import Client
from klsa_search.client.calls import IndexCalls, search_body
from klsa_search.client.protocol import Call
from klsa_search.errors import SettingsError

if TYPE_CHECKING:
    from klsa_search.collection.model import Topic
    from klsa_search.evaluation.measures import Ranking
    from klsa_search.search.explain.explanation import Explanation
    from klsa_search.search.pages.results import SearchResults

T = TypeVar("T")

SEARCHES: Final = 100
_HITS: Final = 10_000
"""Maximum searches, and hits of all of them, of one request of a batch."""


class RemoteIndex:
    """The index `name` of the service at `url`.

    click.UsageError for an invalid URL or key; else the errors of `klsa_search.client.Client`.
    """

    def __init__(self, url: str, name: str, key: str | None) -> None:
        try:
            self._client = Client(url, key=key)
        except SettingsError as error:
            raise click.UsageError(f"--{error.field}: {error.message}") from None
        self._name = name

    def search(
        self, query: str, k: int, options: Mapping[str, Any]
    ) -> tuple[str, str, SearchResults]:
        """Return name, generation and results: see `Index.search`."""
        from klsa_search.search.pages.options import Query

        return self._send_named(IndexCalls(self._name).search(Query(query, k, **options)))

    def explain(
        self, query: str, id_: str, options: Mapping[str, Any]
    ) -> tuple[str, str, Explanation]:
        """Return name, generation and explanation: see `Index.explain`."""
        return self._send_named(IndexCalls(self._name).explain(query, id_, **options))

    def ranker(self, options: Mapping[str, Any]) -> str:
        """Return the name of the ranker for these options."""
        if options.get("ranker"):
            return str(options["ranker"])
        settings = self._client.index(self._name).info().settings or {}
        return str(settings["ranker"])

    def rankings(
        self, queries: Sequence[Topic], k: int, options: Mapping[str, Any]
    ) -> Iterator[Ranking]:
        """Yield the ranking of each query, with many queries in a request."""
        import numpy as np

        from klsa_search.evaluation.measures import Ranking
        from klsa_search.search.pages.options import Query

        size = min(SEARCHES, max(1, _HITS // k))
        for begin in range(0, len(queries), size):
            batch = queries[begin : begin + size]
            bodies = [
                search_body(self._name, Query(query.text, k, rules=False, **options))
                | {"fields": []}
                for query in batch
            ]
            call = Call("POST", "/multi-search", _hits_of_queries, {"queries": bodies})
            answer = self._client.send(call)
            for query, hits in zip(batch, answer, strict=True):
                scores = np.array([score for _, score in hits], np.float64)
                yield Ranking(query.id, tuple(id_ for id_, _ in hits), scores)

    def _send_named(self, call: Call[T]) -> tuple[str, str, T]:
        """Return name and generation of the index, and what a call reads."""

        def read(answer: Any) -> tuple[str, str, T]:
            return answer["index"], answer["generation"], call.read(answer)

        return self._client.send(Call(call.method, call.path, read, call.body, call.query))


def _hits_of_queries(answer: Any) -> list[list[tuple[str, float]]]:
    return [[(hit["id"], hit["score"]) for hit in result["hits"]] for result in answer["results"]]
