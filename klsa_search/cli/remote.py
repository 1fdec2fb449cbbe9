"""An index of a service, asked over HTTP as one of this machine is asked."""

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

_PATIENCE: Final = 60.0
"""Seconds without a byte after which nothing is waited for; the service ends a search before."""

_SEARCHES: Final = 100
_HITS: Final = 10_000
"""Searches, and hits of all of them, that are asked for in one request of a batch."""


class _Straight(HTTPRedirectHandler):
    """Follows no redirection: the service has none, and the key must not go elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Tell it as a failure."""


class RemoteIndex:
    """The index `name` of the service at `url`, asked with a key where there is one.

    click.UsageError for what is no address and no key; ServiceFailed for a service that cannot be
    reached, and in its own words for what it refuses; QueryError where it is the question.
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
        self._opener = build_opener(_Straight)

    def search(
        self, query: str, k: int, options: Mapping[str, Any]
    ) -> tuple[str, str, SearchResults]:
        """Name, generation and what was found. See `Index.search`."""
        from klsa_search.search.results import SearchResults

        answered = self._asked("/search", self._search(query, k, options))
        for facet in answered.get("facets", {}).values():
            facet["values"] = [(each["value"], each["count"]) for each in facet["values"]]
        return answered["index"], answered["generation"], self._read(SearchResults, answered)

    def explain(
        self, query: str, id_: str, options: Mapping[str, Any]
    ) -> tuple[str, str, Explanation]:
        """Name, generation and how a score came about. See `Index.explain`."""
        from klsa_search.search.explain.explanation import Explanation

        asked = urlencode({"q": query, **{name: _in_url(held) for name, held in options.items()}})
        answered = self._asked(f"/indexes/{_part(self._name)}/explain/{_part(id_)}?{asked}")
        return (
            answered["index"],
            answered["generation"],
            self._read(Explanation, answered["explanation"]),
        )

    def ranker(self, options: Mapping[str, Any]) -> str:
        """Return the name of the ranker that these options ask for."""
        chosen = options.get("ranker")
        return str(chosen or self._asked(f"/indexes/{_part(self._name)}")["settings"]["ranker"])

    def rankings(
        self, queries: Sequence[Query], k: int, options: Mapping[str, Any]
    ) -> Iterator[Ranking]:
        """Rank for every query, many in a request."""
        import numpy as np

        from klsa_search.evaluation.runs import Ranking

        at_once = min(_SEARCHES, max(1, _HITS // k))
        for begin in range(0, len(queries), at_once):
            some = queries[begin : begin + at_once]
            searches = [{**self._search(each.text, k, options), "fields": []} for each in some]
            answers = self._asked("/search/batch", {"searches": searches})["answers"]
            for query, answer in zip(some, answers, strict=True):
                hits = answer["hits"]
                scores = np.array([hit["score"] for hit in hits], np.float64)
                yield Ranking(query.id, tuple(hit["id"] for hit in hits), scores)

    def _search(self, query: str, k: int, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"index": self._name, "q": query, "k": k, **options}

    def _read(self, kind: type[T], answered: Any) -> T:
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(kind).validate_python(answered)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise self._failure(
                f"unexpected answer (`{where}`): the service runs another version"
            ) from None

    def _asked(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Answer to a GET, or to a POST of a body."""
        content = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        request = Request(self._url + path, content, headers)  # noqa: S310 - http or https
        try:
            with self._opener.open(request, timeout=_PATIENCE) as answer:
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
        """Return the error of an answer of the service, with its message."""
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
