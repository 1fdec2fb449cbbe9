"""Client of an index of a service, with the interface of a local one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click

from klsa_search.errors import KlsaError, QueryError, ServiceFailed

if TYPE_CHECKING:
    from klsa_search.collection.model import Query
    from klsa_search.evaluation.runs import Ranking
    from klsa_search.search.explain.explanation import Explanation
    from klsa_search.search.results import SearchResults

T = TypeVar("T")

_TIMEOUT: Final = 60.0
"""Seconds without a byte before the request fails; longer than the timeouts of the service."""

_SEARCHES: Final = 100
_HITS: Final = 10_000
"""Maximum searches, and hits of all of them, of one request of a batch."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the service has none, and the key must not be sent elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse the redirect, which makes it an error."""


class RemoteIndex:
    """The index `name` of the service at `url`.

    click.UsageError for an invalid URL or key; ServiceFailed if the service cannot be reached, or
    with its message if it refuses; QueryError for an invalid search.
    """

    def __init__(self, url: str, name: str, key: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise click.UsageError(
                f"--url `{url}` is not an address; give one such as http://127.0.0.1:8000"
            )
        if key is not None and not (key.isascii() and key.isprintable()):
            raise click.UsageError(
                "--key has characters that no API key has; give it as `klsa-keys` printed it"
            )
        self._url, self._name = url.rstrip("/"), name
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._opener = build_opener(_NoRedirect)

    def search(
        self, query: str, k: int, options: Mapping[str, Any]
    ) -> tuple[str, str, SearchResults]:
        """Return name, generation and results: see `Index.search`."""
        from klsa_search.search.results import SearchResults

        answer = self._request("/search", self._search(query, k, options))
        for facet in answer.get("facets", {}).values():
            facet["values"] = [(each["value"], each["count"]) for each in facet["values"]]
        return answer["index"], answer["generation"], self._read(SearchResults, answer)

    def explain(
        self, query: str, id_: str, options: Mapping[str, Any]
    ) -> tuple[str, str, Explanation]:
        """Return name, generation and explanation: see `Index.explain`."""
        from klsa_search.search.explain.explanation import Explanation

        parameters = {name: _in_url(value) for name, value in options.items()}
        path = f"/indexes/{_part(self._name)}/explain/{_part(id_)}"
        answer = self._request(f"{path}?{urlencode({'q': query, **parameters})}")
        explanation = self._read(Explanation, answer["explanation"])
        return answer["index"], answer["generation"], explanation

    def ranker(self, options: Mapping[str, Any]) -> str:
        """Return the name of the ranker for these options."""
        chosen = options.get("ranker")
        return str(chosen or self._request(f"/indexes/{_part(self._name)}")["settings"]["ranker"])

    def rankings(
        self, queries: Sequence[Query], k: int, options: Mapping[str, Any]
    ) -> Iterator[Ranking]:
        """Yield the ranking of each query, with many queries in a request."""
        import numpy as np

        from klsa_search.evaluation.runs import Ranking

        size = min(_SEARCHES, max(1, _HITS // k))
        for begin in range(0, len(queries), size):
            batch = queries[begin : begin + size]
            searches = [{**self._search(each.text, k, options), "fields": []} for each in batch]
            answers = self._request("/multi-search", {"queries": searches})["results"]
            for query, answer in zip(batch, answers, strict=True):
                hits = answer["hits"]
                scores = np.array([hit["score"] for hit in hits], np.float64)
                yield Ranking(query.id, tuple(hit["id"] for hit in hits), scores)

    def _search(self, query: str, k: int, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"index": self._name, "q": query, "k": k, **options}

    def _read(self, kind: type[T], answer: Any) -> T:
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(kind).validate_python(answer)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise self._failure(
                f"unexpected answer (`{where}`): the service runs another version"
            ) from None

    def _request(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the response to a GET, or to a POST of a body."""
        content = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        request = Request(self._url + path, content, headers)  # noqa: S310 - http or https
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                return json.loads(answer.read())
        except HTTPError as refused:
            with refused:
                raise self._refusal(refused.code, refused.read()) from None
        except ValueError:
            raise self._failure("the answer is not JSON") from None
        except (OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, OSError):
                reason = reason.strerror or reason
            raise self._failure(str(reason) or type(error).__name__) from None

    def _refusal(self, status: int, body: bytes) -> KlsaError:
        """Return the error of an error response, with its message."""
        try:
            error = json.loads(body)["error"]
            message, field = str(error["message"]), error["field"]
        except (ValueError, KeyError, TypeError):
            return self._failure(f"the answer has status {status} and is not from klsa-serve")
        return QueryError(message, field=field) if status == 422 else ServiceFailed(message)

    def _failure(self, reason: str) -> ServiceFailed:
        return ServiceFailed(
            f"no usable answer from `{self._url}`: {reason}; check that klsa-serve runs there"
        )


def _part(name: str) -> str:
    return quote(name, safe="")


def _in_url(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
