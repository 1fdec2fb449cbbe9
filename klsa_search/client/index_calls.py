"""Calls about one index, and the batches in which documents are sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from klsa_search.client.protocol import Call, path_part
from klsa_search.client.results import IndexInfo, Job
from klsa_search.collection.model import Document, Problems
from klsa_search.collection.passages import page_of
from klsa_search.collection.vectors import VECTORS
from klsa_search.core.analytics import Analytics, ListName, SynonymProposal
from klsa_search.errors import CollectionError, QueryError
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.sync import SyncResult
from klsa_search.search.writing import WriteResult
from klsa_search.storage.columns.declared import FieldWarning

Record = Document | Mapping[str, Any]
"""A document, or a mapping with `id`, `title`, `text` and metadata fields."""

Synonyms = Mapping[str, Iterable[str]] | Iterable[str]
"""Synonyms by word, or rules: see `Index.set_synonyms`."""

BATCH: Final = 1_000
"""Documents of a request that adds documents, at most."""

_BATCH_BYTES: Final = 2**22
"""Bytes of JSON after which such a request is sent."""

_SUGGESTIONS: Final = TypeAdapter(tuple[Suggestion, ...])
_INDEX: Final = TypeAdapter(IndexInfo)
_DOCUMENT: Final = TypeAdapter(Document)
_EXCERPT: Final = TypeAdapter(Excerpt)
_FACET: Final = TypeAdapter(Facet)
_JOB: Final = TypeAdapter(Job)


class IndexCalls:
    """The calls about one index."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/indexes/{path_part(name)}"

    def info(self) -> Call[IndexInfo]:
        """Return the call for its state."""
        return Call("GET", self._path, _INDEX.validate_python)

    def refit(self) -> Call[Job]:
        """Return the call that starts a refit."""
        path = f"{self._path}/refit"
        return Call("POST", path, _JOB.validate_python, {}, is_idempotent=False)

    def update_settings(self, settings: Mapping[str, Any]) -> Call[Job | None]:
        """Return the call that changes settings."""

        def job(answer: Any) -> Job | None:
            return None if answer["job"] is None else _JOB.validate_python(answer["job"])

        body = {"settings": dict(settings)}
        return Call("PATCH", self._path, job, body, is_idempotent=False)

    def rules(self) -> Call[list[dict[str, Any]]]:
        """Return the call for its rules."""
        return Call("GET", f"{self._path}/rules", lambda answer: list(answer["rules"]))

    def set_rules(self, rules: Iterable[Mapping[str, Any]]) -> Call[list[str]]:
        """Return the call that replaces its rules."""
        body = {"rules": list(rules)}
        return Call("PUT", f"{self._path}/rules", lambda answer: list(answer["warnings"]), body)

    def put_rule(self, rule: Mapping[str, Any]) -> Call[list[str]]:
        """Return the call that replaces or adds a rule."""
        path = f"{self._path}/rules/{path_part(str(rule.get('id')))}"
        return Call("PUT", path, lambda answer: list(answer["warnings"]), dict(rule))

    def delete_rule(self, id_: str) -> Call[int]:
        """Return the call that deletes a rule."""
        path = f"{self._path}/rules/{path_part(id_)}"
        return Call("DELETE", path, lambda answer: int(answer["rules"]), is_idempotent=False)

    def document(self, id_: str) -> Call[Document]:
        """Return the call for a document."""
        path, query = f"/documents/{path_part(id_)}", {"index": self.name, "vectors": "true"}
        return Call("GET", path, _DOCUMENT.validate_python, query=query)

    def excerpt(self, id_: str, span: tuple[int, int] | None, page: int | None) -> Call[Excerpt]:
        """Return the call for a passage, or a part of a document."""
        query = {"index": self.name, "span": span and f"{span[0]}-{span[1]}", "page": page}
        return Call("GET", f"/documents/{path_part(id_)}", _excerpt, query=query)

    def suggest(self, typed: str, k: int) -> Call[tuple[Suggestion, ...]]:
        """Return the call for completions."""
        return Call(
            "GET",
            f"{self._path}/suggest",
            lambda answer: _SUGGESTIONS.validate_python(answer["suggestions"]),
            query={"q": typed, "k": k},
        )

    def facet_search(
        self, field: str, typed: str, k: int, options: Mapping[str, Any]
    ) -> Call[Facet]:
        """Return the call for the values of a field that contain a text."""
        body = {"field": field, "q": typed, "k": k, **options}
        return Call("POST", f"{self._path}/facet-search", _facet, body)

    def event(self, body: Mapping[str, Any]) -> Call[bool]:
        """Return the call that records an event."""
        path = f"{self._path}/events"
        return Call(
            "POST", path, lambda answer: bool(answer["accepted"]), body, is_idempotent=False
        )

    def analytics(self, days: int, k: int) -> Call[Analytics]:
        """Return the call for analytics."""
        return Call("GET", f"{self._path}/analytics", analytics_of, query={"days": days, "k": k})

    def analytics_csv(self, list_: ListName, days: int, k: int) -> Call[str]:
        """Return the call for a list of analytics as CSV."""
        query = {"list": list_, "days": days, "k": k}
        return Call("GET", f"{self._path}/analytics.csv", str, query=query, is_json=False)

    def synonym_proposals(self, days: int, k: int) -> Call[list[SynonymProposal]]:
        """Return the call for proposals of synonyms."""
        query = {"days": days, "k": k}
        return Call("GET", f"{self._path}/analytics/synonyms", proposals_of, query=query)

    def synonyms(self) -> Call[dict[str, list[str]]]:
        """Return the call for its synonyms."""
        return Call("GET", f"{self._path}/synonyms", lambda answer: dict(answer["synonyms"]))

    def set_synonyms(self, synonyms: Synonyms) -> Call[int]:
        """Return the call that replaces its synonyms."""
        return self._change_synonyms("PUT", synonyms)

    def add_synonyms(self, synonyms: Synonyms) -> Call[int]:
        """Return the call that adds synonyms."""
        return self._change_synonyms("PATCH", synonyms)

    def _change_synonyms(self, method: str, synonyms: Synonyms) -> Call[int]:
        rules = (
            {word: list(forms) for word, forms in synonyms.items()}
            if isinstance(synonyms, Mapping)
            else list(synonyms)
        )
        path, body = f"{self._path}/synonyms", {"synonyms": rules}
        return Call(method, path, lambda answer: int(answer["words"]), body)

    def add(self, batch: Sequence[str]) -> Call[WriteResult]:
        """Return the call that adds documents, each as JSON."""
        body = f"[{','.join(batch)}]".encode()
        return Call("POST", f"{self._path}/documents", _written, body)

    def patch(self, id_: str, changes: Mapping[str, Any]) -> Call[WriteResult]:
        """Return the call that patches a document."""
        path = f"{self._path}/documents/{path_part(id_)}"
        return Call("PATCH", path, _written, dict(with_lists(changes)))

    def delete(self, ids: Iterable[str]) -> Call[WriteResult]:
        """Return the call that deletes documents; CollectionError for a text."""
        if isinstance(ids, str):  # its letters would be IDs
            raise CollectionError(f"ids = {ids!r} is a text; give a list of IDs", field="ids")
        path = f"{self._path}/documents/delete-batch"
        return Call("POST", path, _written, list(ids), is_idempotent=False)

    def sync(
        self,
        lines: Iterable[bytes] | AsyncIterable[bytes],
        max_delete: str | int | None,
        dry_run: bool,
    ) -> Call[SyncResult]:
        """Return the call that streams all documents, as lines."""
        query = {"ids": "true", "dry_run": str(dry_run).lower(), "max_delete": max_delete}
        return Call("POST", f"{self._path}/sync", _synced, lines, query, is_stream=True)


def event_body(
    type_: str, results: SearchResults, hit: Hit, previous: SearchResults | None
) -> dict[str, Any]:
    """Return the body of an event; QueryError if the service did not record the search."""
    if results.search_id is None:
        raise QueryError(
            "no `search_id` in the results: the service records no analytics, or not this search; "
            "start klsa-serve with --analytics",
            field="search_id",
        )
    # Results without hits are false.
    replaced = None if previous is None else previous.search_id
    return {
        "type": type_,
        "search_id": results.search_id,
        "id": hit.id,
        "position": hit.rank,
        **({} if replaced is None else {"previous": replaced}),
    }


def _written(answer: Any) -> WriteResult:
    return WriteResult(
        generation=answer["generation"],
        last_write=answer["log_position"],
        written=answer["added"],
        deleted=answer["deleted"],
        warnings=tuple(FieldWarning(**warning) for warning in answer["warnings"]),
    )


def _excerpt(answer: Any) -> Excerpt:
    options_ = {
        "document_id": answer["id"],
        "span": (0, len(answer["text"])),
        "page": page_of(answer["text"], 0),
        "heading": "",
    }
    if "span" in answer:
        options_["page"] = None  # of a part, the service says it
    return _EXCERPT.validate_python({**options_, **answer})


def _facet(answer: Any) -> Facet:
    values = tuple((entry["value"], entry["count"]) for entry in answer["values"])
    return _FACET.validate_python({**answer, "values": values})


def _synced(answer: Any) -> SyncResult:
    ids, warnings = answer["ids"], answer["warnings"]
    return SyncResult(
        added=tuple(ids["added"]),
        changed=tuple(ids["changed"]),
        deleted=tuple(ids["deleted"]),
        unchanged=answer["unchanged"],
        batches=answer["batches"],
        warnings=Problems(warnings["count"], warnings["first"], warnings["kinds"]),
        removed_fields=tuple(answer["removed_fields"]),
    )


def as_json(record: Record) -> str:
    """Return a document as JSON."""
    if isinstance(record, Document):
        record = {
            "id": record.id,
            "title": record.title,
            "text": record.text,
            "metadata": dict(record.metadata),
        }
    return json.dumps(with_lists(record), ensure_ascii=False)


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

    def take(self) -> list[str]:
        """Return the documents, and begin another batch."""
        taken, self.documents, self._bytes = self.documents, [], 0
        return taken


async def stream_records(
    records: Iterable[Record] | AsyncIterable[Record],
) -> AsyncIterator[Record]:
    """Yield records from an iterable of either kind."""
    if isinstance(records, AsyncIterable):
        async for record in records:
            yield record
    else:
        for record in records:
            yield record


_ANALYTICS: Final = TypeAdapter(Analytics)
_PROPOSALS: Final = TypeAdapter(list[SynonymProposal])


def analytics_of(answer: Any) -> Analytics:
    """Return the analytics in an answer."""
    lists = {"days": "day", "queries": "query", "no_results": "query", "low_quality": "query"}
    by_key = {name: {row[key]: row for row in answer[name]} for name, key in lists.items()}
    return _ANALYTICS.validate_python({**answer, **by_key})


def proposals_of(answer: Any) -> list[SynonymProposal]:
    """Return the proposals of synonyms in an answer."""
    return _PROPOSALS.validate_python(answer["proposals"])


def without_arrays(value: Any) -> Any:
    """Return a mapping, list or array with lists of numbers instead of arrays."""
    if isinstance(value, Mapping):
        return {name: without_arrays(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [without_arrays(entry) for entry in value] if isinstance(value, list | tuple) else value


def with_lists(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a document, with lists instead of arrays in its vectors."""
    if VECTORS in record:
        return {**record, VECTORS: without_arrays(record[VECTORS])}
    if isinstance(metadata := record.get("metadata"), Mapping) and VECTORS in metadata:
        return {**record, "metadata": with_lists(metadata)}
    return record
