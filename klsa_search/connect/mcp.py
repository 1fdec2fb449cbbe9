"""Indexes as tools of an assistant, over the Model Context Protocol (`klsa-search[mcp]`).

`search` and `fetch` follow the convention for deep research: each returns one text, in JSON. The
same call returns the same bytes until an index changes.
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
from klsa_search.core.installation import __version__, require
from klsa_search.errors import IndexNotFound, KlsaError, QueryError
from klsa_search.search.index import Index, list_indexes, open_index
from klsa_search.search.pages.assembly import beginning
from klsa_search.search.pages.excerpts import span_of
from klsa_search.search.pages.hits import place_of
from klsa_search.search.pages.results import SearchResults
from klsa_search.search.query.interpretation import filter_notes
from klsa_search.search.ranking.parameters import checked_integer
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
    tools = SearchTools(Path(home), name)
    mcp: MCPServer[Any] = MCPServer("klsa-search", version=__version__, log_level="WARNING")
    for tool in (tools.search, tools.fetch, tools.explain, tools.related):
        mcp.add_tool(
            _as_text(tool),
            description=f"{cleandoc(tool.__doc__ or '')}\n\nIndexes: {', '.join(tools.names())}.",
            annotations=_READS,
            structured_output=False,
        )
    return mcp


class SearchTools:
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
        """Return the names of the indexes that may be searched."""
        return list_indexes(self._home) if self._name is None else [self._name]

    def search(
        self,
        query: str,
        k: int = 10,
        index: str | None = None,
        filter: str | None = None,  # noqa: A002 - the name in the whole API
        max_tokens: int = 2000,
    ) -> Mapping[str, Any]:
        """Search passages of documents by the words of a query and by related words.

        Returns the best passages that fit into max_tokens, best first. Cite a passage by its id;
        fetch takes the id too. `document_id` is that of the whole document, `span` the characters
        of the passage in it. `index` selects an index if there are several. `filter` is a condition
        on metadata, such as: year >= 2020 AND kind != draft. `quality` is from 0 to 1; `note` says
        if nothing was found, if nothing fits, or if no passage is a good match.
        """
        searched = self._index(index).snapshot()
        answers = searched.search(
            query, k, filter=filter, group="passage", max_tokens=max_tokens, quality=True
        )
        results = []
        for hit in answers:
            document_id = hit.document_id or ""
            id_ = document_id if searched.passage_count is None else hit.id
            header = _header(searched.name, id_, hit.title or document_id, hit.metadata)
            cited = place_of(hit) | {"document_id": f"{searched.name}/{document_id}"}
            results.append(header | cited | {"text": hit.text})
        note = _note(answers, max_tokens)
        return {
            "results": results,
            "tokens": answers.tokens,
            "truncated": answers.truncated,
            "quality": answers.quality,
            **({"note": note} if note else {}),
        }

    def fetch(
        self,
        id: str,  # noqa: A002 - the name in the convention
        span: str | None = None,
        page: int | None = None,
        max_tokens: int = 8000,
    ) -> Mapping[str, Any]:
        """Return a passage or document by its id, or a page or span (as 0-1822) of a document.

        A text longer than max_tokens is cut; fetch the document with `next_span` to read on.
        """
        index, id_ = self._split(id)
        index = index.snapshot()
        excerpt = index.excerpt(id_, span=None if span is None else span_of(span), page=page)
        begin, end = excerpt.span
        text = beginning(excerpt.text, checked_integer("max_tokens", max_tokens))
        if len(text) < end - begin:
            excerpt = index.excerpt(excerpt.document_id, span=(begin, begin + len(text)))
        header = _header(
            index.name, excerpt.id, excerpt.title or excerpt.document_id, excerpt.metadata
        )
        answer = header | {"text": excerpt.text, "metadata": excerpt.metadata}
        if excerpt.is_part:
            answer |= {
                "document_id": f"{index.name}/{excerpt.document_id}",
                "page": excerpt.page,
                "span": excerpt.span,
                "heading": excerpt.heading,
            }
        if excerpt.span[1] < end:
            answer |= {"truncated": True, "next_span": f"{excerpt.span[1]}-{end}"}
        return answer

    def explain(self, query: str, id: str) -> Mapping[str, Any]:  # noqa: A002 - likewise
        """Explain the score of a document for a query, as a sum of parts.

        lexical: query words in the document; coverage: query words in similar documents; latent:
        closeness in the latent space; expansion: similar documents that contain the query words.
        """
        index, id_ = self._split(id)
        return asdict(index.explain(query, index.excerpt(id_).document_id))

    def related(self, term: str, k: int = 10, index: str | None = None) -> Mapping[str, Any]:
        """Return words that are related to a word in these documents, or nearly synonymous."""
        related = mining.related(self._index(index), term, k)
        return {"related": [asdict(one) for one in related]}

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


def _note(results: SearchResults, max_tokens: int) -> str:
    """Return what an assistant should know of the results, "" if they are complete and good."""
    if not results.hits and results.truncated:
        return f"nothing fits: no passage is within max_tokens = {max_tokens}; raise it"
    notes = filter_notes(results.interpretation, results.query)
    if not results.hits:
        return "; ".join(["nothing found", *(notes or ["try other words"])])
    if results.good_match is False:
        notes.append("no good match: the passages may not answer the question")
    if results.truncated:
        notes.append("more passages match than fit; raise max_tokens, or ask more precisely")
    return "; ".join(notes)


def _as_text(tool: Callable[..., Mapping[str, Any]]) -> Callable[..., str]:
    """Return a tool that returns JSON, and reports errors to the assistant, which can retry."""

    @wraps(tool)
    def answer(**fields: Any) -> str:
        try:
            # Metadata may have NaN, which is not valid JSON.
            return to_json(tool(**fields), inf_nan_mode="null").decode()
        except KlsaError as error:
            raise ToolError(error.message) from error

    return answer
