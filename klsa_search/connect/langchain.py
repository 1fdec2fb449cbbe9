"""An index as a retriever of LangChain (`klsa-search[langchain]`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klsa_search.core.installation import require
from klsa_search.search.index import Index
from klsa_search.search.pages.hits import place_of
from klsa_search.search.pages.results import Hit

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from pydantic import ConfigDict, Field
except ModuleNotFoundError:
    require("langchain")
    raise


class KlsaRetriever(BaseRetriever):
    """Retriever of LangChain: the best documents of an index for a query.

    index       open `Index`; each call sees its current state
    k           maximum number of documents; `invoke(query, k=3)` overrides it
    filter      condition on the metadata, as text or JSON; `invoke(query, filter=...)` overrides it
    max_tokens  return passages, as many of the best as fit into this number of tokens, instead of
                documents; `invoke(query, max_tokens=2000)` overrides it
    parameters  other parameters of `Index.search`, such as `{"ranker": "bm25"}`

    Documents have `title` and `score` in their metadata; passages also `document_id`, `span`,
    `page` and `heading`. `ainvoke` runs in a thread. QueryError for invalid parameters.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Index
    k: int = 10
    filter: str | Mapping[str, Any] | None = None
    max_tokens: int | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | Mapping[str, Any] | None = None,  # noqa: A002 - the name in `Index.search`
        max_tokens: int | None = None,
    ) -> list[Document]:
        snapshot = self.index.snapshot()
        max_tokens = self.max_tokens if max_tokens is None else max_tokens
        options: dict[str, Any] = {"filter": self.filter if filter is None else filter}
        if max_tokens is not None:
            options |= {"group": "passage", "max_tokens": max_tokens}
        hits = snapshot.search(
            query, self.k if k is None else k, **{**self.parameters, **options}
        ).hits
        return [_document(hit, snapshot) for hit in hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        options["run_manager"] = run_manager.get_sync()
        return await run_in_executor(None, self._get_relevant_documents, query, **options)


def _document(hit: Hit, index: Index) -> Document:
    """Return a hit with its text: of the passage, or of the document."""
    metadata = {**hit.metadata, "title": hit.title, "score": hit.score}
    if hit.text is None:
        text = index.document(hit.id).text
    else:
        text = hit.text
        metadata |= place_of(hit)
    return Document(id=hit.id, page_content=text, metadata=metadata)
