"""Requests to a service: their retries, documents as JSON, how answers and errors are read."""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import httpx
import numpy as np
from pydantic import ValidationError

from klsa_search import errors
from klsa_search.collection.model import Document
from klsa_search.collection.vectors import VECTORS
from klsa_search.core.arguments import checked_argument, checked_iterable
from klsa_search.core.service_reports import Job
from klsa_search.errors import CollectionError, KlsaError, QueryError, ServiceFailed, SettingsError

T = TypeVar("T")

TIMEOUT: Final = 60.0
"""Seconds without a byte before a request fails; longer than the timeouts of the service."""

RETRIES: Final = 3  # times that a request is repeated by default
_MAX_PAUSE: Final = 30.0  # seconds between two attempts at most, whatever the service asks for
_BUSY: Final = frozenset({429, 503})  # statuses after which the same request may succeed
PIECE: Final = 2**18  # bytes of a file that are sent at once
_ERRORS: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, KlsaError)
}
"""Errors of the library by code."""


Answer = httpx.Response | httpx.RequestError  # what a request led to


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request.

    read           returns what the JSON or the text of its answer contains
    body           JSON, bytes of JSON, or a stream of bytes
    stream         content type of a stream, which is sent once; blank if the body is none
    is_idempotent  whether sending it twice gives the state and the answer of sending it once
    is_json        whether the answer is JSON; else it is text
    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""
    is_idempotent: bool = True
    is_json: bool = True


class Service:
    """The address of a service, and how its answers and errors are read.

    SettingsError for an invalid address or key.
    """

    def __init__(
        self, url: str, key: str | None = None, retries: int = RETRIES, timeout: float = TIMEOUT
    ) -> None:
        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            parts = httpx.URL()
        if parts.scheme not in ("http", "https") or not parts.host or parts.query:
            raise SettingsError(
                f"`{url}` is not the address of a service; give one such as http://127.0.0.1:8000",
                field="url",
            )
        if key is not None and not (key.isascii() and key.isprintable()):
            raise SettingsError(
                "the key has characters that no API key has; give it as `klsa-keys` printed it",
                field="key",
            )
        self.url = url.rstrip("/")
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.retries, self.timeout = retries, timeout

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of `httpx.Client.request`."""
        arguments: dict[str, Any] = {
            "method": call.method,
            "url": self.url + call.path,
            "params": {name: value for name, value in call.query.items() if value is not None},
        }
        if call.body is not None:
            is_written = isinstance(call.body, bytes) or call.stream
            arguments["content"] = call.body if is_written else json.dumps(call.body).encode()
            arguments["headers"] = {"Content-Type": call.stream or "application/json"}
        if call.stream:  # the service answers when all of it is written
            arguments["timeout"] = httpx.Timeout(self.timeout, read=None)
        return arguments

    def pause(self, call: Call[Any], answer: Answer, attempt: int) -> float | None:
        """Return the seconds before a request is repeated; None if it is not.

        A request that is not idempotent is repeated only if it was certainly not processed.
        """
        if attempt >= self.retries or call.stream:
            return None
        after = ""
        if isinstance(answer, httpx.Response):
            after = answer.headers.get("retry-after", "")
            if answer.status_code not in _BUSY or not (after or call.is_idempotent):
                return None  # without Retry-After, it may still run
        elif not isinstance(
            answer, httpx.NetworkError if call.is_idempotent else httpx.ConnectError
        ):
            return None  # a timeout, or not HTTP, or the answer may be lost
        return min(float(after) if after.isdigit() else 0.1 * 2**attempt, _MAX_PAUSE)

    def checked(self, response: httpx.Response) -> httpx.Response:
        """Return an answer, or raise the error that it reports."""
        if not response.is_success:
            raise self._reported(response)
        return response

    def read(self, call: Call[T], response: Answer) -> T:
        """Return what an answer contains, or raise the error that it reports."""
        if not isinstance(response, httpx.Response):
            raise self.failure(str(response).rstrip(".") or type(response).__name__) from None
        self.checked(response)
        try:
            return call.read(response.json() if call.is_json else response.text)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise self.failure(
                f"unexpected answer (`{where}`): the service runs another version"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise self.failure("the answer is not from klsa-serve") from None

    def failure(self, reason: object) -> ServiceFailed:
        """Return the error of a service that gives no usable answer."""
        return ServiceFailed(
            f"no usable answer from `{self.url}`: {reason}; check that klsa-serve runs there"
        )

    def _reported(self, response: httpx.Response) -> KlsaError:
        try:
            error = response.json()["error"]
            code, message, about = error["code"], str(error["message"]), error["field"]
            added = int(error.get("added", 0))
        except (ValueError, KeyError, TypeError):
            return self.failure(
                f"the answer has status {response.status_code} and is not from klsa-serve"
            )
        reported = _ERRORS.get(code, ServiceFailed)(message)
        reported.field, reported.added = about, added
        return reported


def path_part(text: str) -> str:
    """Return a name or an ID as one part of a path; QueryError for `.` and `..`.

    Clients and proxies remove these from an address, so the request would be another one.
    """
    if checked_argument("id", text, str) in (".", ".."):
        raise QueryError(
            f"`{text}` cannot be sent in an address, which it would change; rename it", field="id"
        )
    return quote(text, safe="")


F = TypeVar("F", bound=Callable[..., Any])


def documented_as(make: Callable[..., Call[Any]]) -> Callable[[F], F]:
    """Return a decorator: name, documentation and signature are those of a function of calls.

    The method returns what the call is answered.
    """
    signature = inspect.signature(make)
    result = signature.return_annotation.removeprefix("Call[").removesuffix("]")

    def decorate(method: F) -> F:
        module = method.__module__
        update_wrapper(method, make)
        method.__module__ = module
        method.__annotations__ = {**make.__annotations__, "return": result}
        vars(method)["__signature__"] = signature.replace(return_annotation=result)
        return method

    return decorate


Record = Document | Mapping[str, Any]
"""A document, or a mapping with `id`, `title`, `text` and metadata fields."""

BATCH: Final = 1_000  # documents of a request that adds documents, at most
_BATCH_BYTES: Final = 2**22  # bytes of JSON after which such a request is sent


class Batch:
    """Documents that wait to be sent together."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self._bytes = 0

    def add(self, record: Record) -> bool:
        """Add a document; return whether the batch is full."""
        written = as_json(record)
        self.documents.append(written)
        self._bytes += len(written)
        return len(self.documents) == BATCH or self._bytes > _BATCH_BYTES

    def take(self) -> bytes:
        """Return the documents as an array of JSON, and begin another batch."""
        taken, self.documents, self._bytes = self.documents, [], 0
        return f"[{','.join(taken)}]".encode()


def records_of(records: Iterable[Record] | Record) -> Iterable[Record]:
    """Return the records of an argument, which may be one; ArgumentError for a text."""
    if isinstance(records, Document | Mapping):
        return [records]
    return checked_iterable("documents", records, Document, Mapping)


def checked_file(path: str | Path) -> Path:
    """Return the path of a file that can be sent; CollectionError if there is none."""
    file = Path(checked_argument("path", path, str, os.PathLike))
    if file.is_dir():
        raise CollectionError(f"{file.absolute()}: is a folder; send its files", field="path")
    if not file.is_file():
        raise CollectionError(f"{file.absolute()}: no such file; correct the path", field="path")
    return file


async def stream_records(
    records: Iterable[Record] | AsyncIterable[Record] | Record,
) -> AsyncIterator[Record]:
    """Yield records from an iterable of either kind: see `records_of`."""
    if isinstance(records, AsyncIterable):
        async for record in records:
            yield record
    else:
        for record in records_of(records):
            yield record


def as_json(record: Record) -> str:
    """Return a document as JSON."""
    if isinstance(record, Document):
        record = {
            "id": record.id,
            "title": record.title,
            "text": record.text,
            "metadata": dict(record.metadata),
        }
    record = checked_argument("documents", record, Document, Mapping)
    return json.dumps(with_lists(record), ensure_ascii=False)


def with_lists(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a document, with lists instead of arrays in its vectors."""
    if VECTORS in record:
        return {**record, VECTORS: without_arrays(record[VECTORS])}
    if isinstance(metadata := record.get("metadata"), Mapping) and VECTORS in metadata:
        return {**record, "metadata": with_lists(metadata)}
    return record


def without_arrays(value: Any) -> Any:
    """Return a mapping, list or array with lists of numbers instead of arrays."""
    if isinstance(value, Mapping):
        return {name: without_arrays(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [without_arrays(entry) for entry in value] if isinstance(value, list | tuple) else value


def deadline_of(timeout: float | None) -> float:
    """Return the time, in seconds of `monotonic`, at which a timeout expires."""
    return float("inf") if timeout is None else time.monotonic() + timeout


def has_ended(job: Job, deadline: float) -> bool:
    """Return whether a job has ended; TimeoutError after the deadline."""
    if not job.has_ended and time.monotonic() > deadline:
        raise TimeoutError(
            f"job {job.id} has not ended (state `{job.state}`); wait again, or cancel it"
        )
    return job.has_ended
