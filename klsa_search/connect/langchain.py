"""An index as a retriever of LangChain (`klsa-search[langchain]`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klsa_search.core.extras import require
from klsa_search.search.index import Index

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
    parameters  other parameters of `Index.search`, such as `{"ranker": "bm25"}`

    Documents have `title` and `score` in their metadata. `ainvoke` runs in a thread. QueryError for
    invalid parameters.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Index
    k: int = 10
    filter: str | Mapping[str, Any] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | Mapping[str, Any] | None = None,  # noqa: A002 - the name in `Index.search`
    ) -> list[Document]:
        snapshot = self.index.snapshot()
        hits = snapshot.search(
            query,
            self.k if k is None else k,
            filter=self.filter if filter is None else filter,
            **self.parameters,
        ).hits
        texts = snapshot.documents(snapshot.doc_ids(hit.id for hit in hits))
        return [
            Document(
                id=hit.id,
                page_content=document.text,
                metadata={**hit.metadata, "title": hit.title, "score": hit.score},
            )
            for hit, document in zip(hits, texts, strict=True)
        ]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | Mapping[str, Any] | None = None,  # noqa: A002 - the name in `Index.search`
    ) -> list[Document]:
        given = {"run_manager": run_manager.get_sync(), "k": k, "filter": filter}
        found: list[Document] = await run_in_executor(
            None, self._get_relevant_documents, query, **given
        )
        return found
