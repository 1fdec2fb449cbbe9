"""Indexes as tools of an assistant, over the Model Context Protocol (`klsa-search[mcp]`).

`search` and `fetch` follow the convention for deep research: each returns one text, in JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import to_json

from klsa_search import mining
from klsa_search.core.extras import require
from klsa_search.core.version import __version__
from klsa_search.errors import IndexNotFound, KlsaError, QueryError
from klsa_search.search.index import Index
from klsa_search.search.opening import list_indexes, open_index
from klsa_search.storage.names import index_path

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
except ModuleNotFoundError:
    require("mcp")
    raise

_READS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def server(home: str | Path, name: str | None = None) -> MCPServer[Any]:
    """Return an MCP server of one index, or of all indexes of an index directory; call its `run`.

    All tools name a document as INDEX/ID. Each call sees the current state of the indexes.
    IndexNotFound if there is no index.
    """
    tools = _Tools(Path(home), name)
    mcp: MCPServer[Any] = MCPServer("klsa-search", version=__version__, log_level="WARNING")
    for tool in (tools.search, tools.fetch, tools.explain, tools.related):
        mcp.add_tool(
            _as_text(tool),
            description=f"{cleandoc(tool.__doc__ or '')}\n\nIndexes: {', '.join(tools.names())}.",
            annotations=_READS,
            structured_output=False,
        )
    return mcp


class _Tools:
    """Tools over the indexes of an index directory; each index is opened at its first use."""

    def __init__(self, home: Path, name: str | None) -> None:
        self._home, self._name = home, name
        self._indexes: dict[str, Index] = {}
        self._locks: dict[str, threading.Lock] = {}
        if name is not None:
            self._index(name)
        elif not self.names():
            raise IndexNotFound(
                f"no index in `{home}`; build one with `klsa-index build`, or name "
                "another index directory with --home",
                field="home",
            )

    def names(self) -> list[str]:
        return list_indexes(self._home) if self._name is None else [self._name]

    def search(
        self,
        query: str,
        k: int = 10,
        index: str | None = None,
        filter: str | None = None,  # noqa: A002 - the name in the whole API
    ) -> Mapping[str, Any]:
        """Search documents by the words of a query and by related words.

        Returns the best documents first, each with its id (for fetch and explain), title, url and a
        passage. `index` selects an index if there are several. `filter` is a condition on metadata,
        such as: year >= 2020 AND kind != draft
        """
        searched = self._index(index)
        hits = searched.search(query, k, filter=filter).hits
        return {
            "results": [
                _header(searched.name, hit.id, hit.title, hit.metadata) | {"text": hit.snippet}
                for hit in hits
            ]
        }

    def fetch(self, id: str) -> Mapping[str, Any]:  # noqa: A002 - the name in the convention
        """Return one complete document, by the id that search returned."""
        index, id_ = self._split(id)
        document = index.document(id_)
        header = _header(index.name, id_, document.title, document.metadata)
        return header | {"text": document.text, "metadata": document.metadata}

    def explain(self, query: str, id: str) -> Mapping[str, Any]:  # noqa: A002 - likewise
        """Explain the score of a document for a query, as a sum of parts.

        lexical: query words in the document; coverage: query words in similar documents; latent:
        similarity in meaning; expansion: similar documents that contain the query words.
        """
        index, id_ = self._split(id)
        return asdict(index.explain(query, id_))

    def related(self, term: str, k: int = 10, index: str | None = None) -> Mapping[str, Any]:
        """Return words that are related to a word in these documents, or nearly synonymous."""
        found = mining.related(self._index(index), term, k)
        return {"related": [asdict(one) for one in found]}

    def _index(self, name: str | None) -> Index:
        """Return the current state of an index, by name, or of the only one."""
        names = self.names()
        if name is None and len(names) == 1:
            (name,) = names
        if name is None or (self._name is not None and name != self._name):
            raise QueryError(
                f"index = {name!r} is unknown; choose one of {', '.join(names)}", field="index"
            )
        path = index_path(self._home, name)
        with self._locks.setdefault(name, threading.Lock()):
            if name not in self._indexes:
                self._indexes[name] = open_index(path)
        self._indexes[name].refresh()
        return self._indexes[name]

    def _split(self, full_id: str) -> tuple[Index, str]:
        """Return the index of a document and its ID there, from INDEX/ID."""
        name, slash, id_ = full_id.partition("/")
        if not slash:
            raise QueryError(
                f"id = {full_id!r} is not of the form INDEX/ID, as search returns it", field="id"
            )
        return self._index(name), id_


def _header(name: str, id_: str, title: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return ID, title and url of a document; the url is generated if its metadata has none."""
    full_id, url = f"{name}/{id_}", metadata.get("url")
    if not isinstance(url, str) or not url.strip():
        url = f"klsa://{quote(full_id)}"
    return {"id": full_id, "title": title or id_, "url": url}


def _as_text(tool: Callable[..., Mapping[str, Any]]) -> Callable[..., str]:
    """Return a tool that returns JSON, and reports errors to the assistant, which can retry."""

    @wraps(tool)
    def answer(**given: Any) -> str:
        try:
            # Metadata may have NaN, which is not valid JSON.
            return to_json(tool(**given), inf_nan_mode="null").decode()
        except KlsaError as error:
            raise ToolError(error.message) from error

    return answer
