"""Embedders at an OpenAI-compatible address: `POST .../embeddings`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
import numpy as np

from klsa_search.embedding.model import Embeddings, EmbedKind
from klsa_search.errors import EmbedderFailed, SettingsError

KEY: Final = "KLSA_EMBEDDER_KEY"  # environment variable of the API key
_TIMEOUT: Final = {"query": 2.0, "document": 60.0}
"""Seconds to wait for a connection, and for each part of an answer."""

_ATTEMPTS: Final = {"query": 1, "document": 5}  # a search does not wait for another attempt
_BACK_OFF: Final = 0.5  # seconds before the second attempt; they double with each one
_LONGEST_WAIT: Final = 60.0
_TEMPORARY: Final = frozenset({408, 409, 429, 500, 502, 503, 504})

_MAX_CHARACTERS: Final = 8_000
"""Characters of a text that are sent; services refuse more than about 8,000 tokens."""


class OpenAIEmbedder:
    """A model of a service with the API of OpenAI, such as vLLM or Ollama.

    url      as far as /v1, such as http://127.0.0.1:8080/v1
    model    name of the model, which is the fingerprint, as the service has no other
    key      API key; by default that of the variable `KLSA_EMBEDDER_KEY`, if it is set
    back_off  seconds before the second attempt

    Temporary failures of documents are retried, after the seconds of Retry-After if it is sent.
    SettingsError for an invalid URL; nothing is sent yet.
    """

    def __init__(
        self, url: str, model: str, *, key: str | None = None, back_off: float = _BACK_OFF
    ) -> None:
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL:
            address = httpx.URL()
        if address.scheme not in ("http", "https") or not address.host or not model:
            raise SettingsError(
                f"embedder `openai:{url.rpartition('@')[2]}#{model}` names no address and model; "
                "give them as in openai:http://127.0.0.1:8080/v1#MODEL",
                field="embedder",
            )
        if address.userinfo:
            raise SettingsError(
                "the address of an embedder has a user name or password, which logs and errors "
                f"would show; leave it out, and set the API key as {KEY}",
                field="embedder",
            )
        path = address.path.rstrip("/")
        self._url = address.copy_with(path=path.removesuffix("/embeddings") + "/embeddings")
        self.name = model
        self.fingerprint = f"openai:{model}"
        self._back_off = back_off
        self._dimension: int | None = None
        key = os.environ.get(KEY) if key is None else key
        self._client = httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})

    @property
    def dimension(self) -> int:
        """Return the dimension of the first answer; EmbedderFailed if there is none."""
        if self._dimension is None:
            self.embed(["dimension"], "document")
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts; EmbedderFailed."""
        body = {
            "model": self.name,
            "input": [text[:_MAX_CHARACTERS] for text in texts],
            "encoding_format": "float",
        }
        vectors = self._vectors(self._answer(body, kind), len(texts))
        if self._dimension is None:
            self._dimension = vectors.shape[1]
        return vectors

    def _answer(self, body: dict[str, Any], kind: EmbedKind) -> Any:
        attempts = _ATTEMPTS[kind]
        for attempt in range(1, attempts + 1):
            wait = self._back_off * 2 ** (attempt - 1)
            try:
                response = self._client.post(self._url, json=body, timeout=_TIMEOUT[kind])
            except httpx.RequestError as error:
                if attempt == attempts:
                    reason = str(error) or type(error).__name__
                    raise self._failed(
                        f"is not reachable ({reason})", "check that it runs"
                    ) from error
            else:
                if response.is_success:
                    try:
                        return response.json()
                    except ValueError:
                        raise self._failed("returned no JSON", "check the address") from None
                if response.status_code in (401, 403):
                    raise self._failed("refused the API key", f"set {KEY}")
                if response.status_code not in _TEMPORARY or attempt == attempts:
                    raise self._failed(
                        f"answered with status {response.status_code}{_message(response)}",
                        "check address and model",
                    )
                wait = max(wait, retry_after(response))
            time.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError("the last attempt returns or raises")

    def _vectors(self, answer: Any, number: int) -> Embeddings:
        try:
            items = sorted(answer["data"], key=lambda item: int(item["index"]))
            vectors = np.array([item["embedding"] for item in items], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise self._failed("returned no embeddings", "check address and model") from error
        if vectors.ndim != 2 or len(vectors) != number:
            raise self._failed(f"returned {len(vectors)} embeddings of {number} texts", "check it")
        return vectors

    def _failed(self, fact: str, step: str) -> EmbedderFailed:
        return EmbedderFailed(
            f"embedder `{self.name}` at `{self._url}` {fact}; {step}", field="embedder"
        )


def _message(response: httpx.Response) -> str:
    """Return the beginning of the message of an error, if the service sent one."""
    try:
        text = response.json()["error"]["message"]
    except (KeyError, TypeError, ValueError):
        return ""
    return f" ({' '.join(str(text).split())[:200]})"


def retry_after(response: httpx.Response) -> float:
    """Return the seconds of Retry-After, a number or a date; 0 if there is none."""
    header = response.headers.get("Retry-After", "")
    try:
        return float(header)
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return 0.0
