"""Open an embedder or a reranker by its specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from klsa_search.core.lazy import lazy_property
from klsa_search.core.plugins import find_plugin, imported, load_plugin
from klsa_search.embedding.model import (
    CheckedEmbedder,
    CheckedReranker,
    Embedder,
    Embeddings,
    EmbedKind,
    Reranker,
)
from klsa_search.errors import SettingsError

_CODE: Final = "python:module:function or the name of a plug-in"
_FORMS: Final = {
    "embedder": f"onnx:FOLDER, sentence-transformers:FOLDER, openai:URL#MODEL, {_CODE}",
    "reranker": _CODE,
}


def open_embedder(
    embedder: Embedder | EmbeddingFunction | str, *, threads: int = 1
) -> CheckedEmbedder:
    """Open an embedder, with time limits and checked answers.

    embedder  `onnx:FOLDER`, `sentence-transformers:FOLDER`, `openai:URL#MODEL`,
              `python:module:function`, the name of a plug-in, a function, or an object of the
              protocol. The code it names is run: take specifications from the user, never from an
              index or a request
    threads   of an ONNX model, for each call
    A function gets the texts and their kind, "query" or "document", and returns an array
    (n, dimension). Models are read from local folders, and nothing is downloaded. SettingsError;
    MissingExtra. Cost: loading the model.

    >>> def counts(texts, kind):
    ...     return np.array([[1.0, len(text)] for text in texts])
    >>> embedder = open_embedder(counts)
    >>> embedder.dimension, embedder.embed(["wet roads"], "query").tolist()
    (2, [[1.0, 9.0]])
    """
    if isinstance(embedder, CheckedEmbedder):
        return embedder
    if isinstance(embedder, str):
        return CheckedEmbedder(_embedder_of(embedder, threads))
    return CheckedEmbedder(_as_embedder(embedder, _name_of(embedder)))


def open_reranker(reranker: Reranker | str) -> CheckedReranker:
    """Open a reranker, with a time limit and checked scores.

    reranker  `python:module:function`, the name of a plug-in, or a function of a query and texts
              that returns a score for each text. The code it names is run: see `open_embedder`

    >>> rerank = open_reranker(lambda query, texts: [text.count(query) for text in texts])
    >>> rerank("wet", ["dry", "wet, wet roads"])
    [0.0, 2.0]
    """
    if isinstance(reranker, CheckedReranker):
        return reranker
    is_named = isinstance(reranker, str)
    name = reranker if isinstance(reranker, str) else _name_of(reranker)
    function = _code(name, "reranker") if is_named else reranker
    if isinstance(function, type):
        function = function()
    if not callable(function):
        raise SettingsError(f"reranker `{name}` is not a function; name one", field="reranker")
    return CheckedReranker(function, name)


def _embedder_of(spec: str, threads: int) -> Embedder:
    kind, _, rest = spec.partition(":")
    if kind == "onnx":
        from klsa_search.embedding.local_models import OnnxEmbedder

        return OnnxEmbedder(Path(rest), threads=threads)
    if kind == "sentence-transformers":
        from klsa_search.embedding.local_models import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(Path(rest))
    if kind == "openai":
        from klsa_search.embedding.openai import OpenAIEmbedder

        url, _, model = rest.partition("#")
        return OpenAIEmbedder(url, model)
    return _as_embedder(_code(spec, "embedder"), spec)


def _as_embedder(loaded: Any, name: str) -> Embedder:
    """Return an embedder of an object, a class without arguments, or a function."""
    if isinstance(loaded, type):
        loaded = loaded()
    if hasattr(loaded, "embed"):
        return loaded  # type: ignore[no-any-return]  # its answers are checked at each call
    if callable(loaded):
        return FunctionEmbedder(loaded, name)
    raise SettingsError(
        f"embedder `{name}` is neither a function nor an object with embed(); name one",
        field="embedder",
    )


def _code(spec: str, field: Literal["embedder", "reranker"]) -> Any:
    """Return the object of a plug-in or `python:module:function`; SettingsError, PluginFailed."""
    if ":" not in spec and find_plugin(field, spec) is not None:
        return load_plugin(field, spec)
    kind, _, name = spec.partition(":")
    module, _, path = name.partition(":")
    if kind != "python" or not module or not path:
        raise SettingsError(f"{field} = {spec!r} is unknown; give {_FORMS[field]}", field=field)
    return imported(field, name)


def _name_of(value: object) -> str:
    name = getattr(value, "name", None) or getattr(value, "__qualname__", type(value).__qualname__)
    module = getattr(value, "__module__", "")
    return str(name) if hasattr(value, "name") else f"python:{module}:{name}"


EmbeddingFunction = Callable[[Sequence[str], EmbedKind], Any]
"""Returns the vectors of texts, (n, dimension); the kind is "query" or "document"."""


class FunctionEmbedder:
    """An embedder that calls a function.

    name  identifies the function, and is its fingerprint unless it has an attribute `fingerprint`
    """

    def __init__(self, function: EmbeddingFunction, name: str) -> None:
        self.name = name
        self.fingerprint = str(getattr(function, "fingerprint", name))
        self._function = function

    @lazy_property
    def dimension(self) -> int:
        """Return the dimension of the vector of a text."""
        return int(np.shape(self._function(["dimension"], "document"))[-1])

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts."""
        vectors: Embeddings = self._function(texts, kind)
        return vectors
