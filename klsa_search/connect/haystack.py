"""An index as a document store of Haystack, and its retriever (`klsa-search[haystack]`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.collection.model import Document as StoredDocument
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.array_types import DocumentMask
from klsa_search.core.installation import require
from klsa_search.indexing.build import build
from klsa_search.search.filters.masks import mask_of
from klsa_search.search.filters.parser import And, Condition, Filter, Not, Or
from klsa_search.search.index import Index, open_index
from klsa_search.search.pages.hits import place_of
from klsa_search.search.pages.results import Hit
from klsa_search.storage.columns.columns import Field, Fields
from klsa_search.storage.columns.values import COERCIONS, TypeMismatch
from klsa_search.storage.directories import is_index

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
except ModuleNotFoundError:
    require("haystack")
    raise

_ALL: Final = And(())
_NONE: Final = Or(())


def filter_of(condition: Mapping[str, Any], fields: Fields, reserved: Collection[str]) -> Filter:
    """Convert a Haystack filter: `{"field": "meta.year", "operator": ">=", "value": 2020}`.

    reserved  names of meta that are not filterable
    A document without a value passes `!=`, `not in` and `==` None. A value of another type than
    the field equals no value. FilterError for a malformed filter, a bound that is not a number or
    date, and a field that is not filterable.
    """
    if not isinstance(condition, Mapping):
        raise FilterError(f"{condition!r} is not a filter; give a dictionary")
    if "field" in condition:
        return _comparison(condition, fields, reserved)
    operator = _part(condition, "operator")
    conditions = _part(condition, "conditions")
    if operator not in ("AND", "OR", "NOT") or not isinstance(conditions, list):
        raise FilterError(f"{condition!r}: give AND, OR or NOT, and a list of conditions")
    parts = tuple(filter_of(part, fields, reserved) for part in conditions)
    if operator == "OR":
        return Or(parts)
    return Not(And(parts)) if operator == "NOT" else And(parts)


def _comparison(condition: Mapping[str, Any], fields: Fields, reserved: Collection[str]) -> Filter:
    operator, value = _part(condition, "operator"), _part(condition, "value")
    if operator not in _OPERATORS:
        raise FilterError(
            f"unknown operator {operator!r}; the operators are: {', '.join(_OPERATORS)}"
        )
    full_name = str(condition["field"])
    name = full_name.removeprefix("meta.")
    if name in reserved or (
        name == full_name and name in ("content", "embedding", "blob", "score")
    ):
        raise FilterError(f"field {full_name!r} is not filterable; use other fields of meta")
    if name not in fields:
        for part in (name, name.partition(".")[0]):
            if part in fields.unfilterable:
                raise FilterError(
                    f"field {full_name!r} is not filterable ({fields.unfilterable[part]}); "
                    "declare it with `fields` when the store is created"
                )
    field = fields.get(name)
    if operator in _BOUNDS:
        return _bound(operator, name, field, value)
    if operator in ("==", "in"):
        values = value if operator == "in" else [value]
        if not isinstance(values, list):
            raise FilterError(f"field {name!r}: {values!r} is not a list of values")
        return Or(tuple(_equal(name, field, one) for one in values))
    opposite = {"!=": "==", "not in": "in"}[operator]
    return Not(_comparison({**condition, "operator": opposite}, fields, reserved))


def _part(condition: Mapping[str, Any], name: str) -> Any:
    if name not in condition:
        raise FilterError(f"{condition!r} has no {name!r}")
    return condition[name]


def _equal(name: str, field: Field | None, value: Any) -> Filter:
    if field is None:
        return _ALL if value is None else _NONE
    if value is None:
        return Not(Condition(name, "EXISTS"))
    converted = _converted(field, value)
    return _NONE if converted is None else Condition(name, "=", (converted,))


def _bound(operator: Any, name: str, field: Field | None, value: Any) -> Filter:
    if value is None:
        return _NONE
    if isinstance(value, bool | list) or (isinstance(value, str) and not _is_date(value)):
        raise FilterError(f"field {name!r}: {value!r} is neither a number nor a date")
    if field is None:
        return _NONE
    converted = _converted(field, value)
    if converted is None or field.type == "keyword":
        raise FilterError(
            f"field {name!r} is a {field.type} field, and {value!r} is not a bound for it"
        )
    return Condition(name, operator, (converted,))


def _converted(field: Field, value: Any) -> Any:
    """Return a value for the filters of an index; None if its type is not that of the field."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if field.type == "number" and (isinstance(value, str | bool)):
        return None  # filters would read text of digits as a number
    try:
        COERCIONS[field.type](value)
    except TypeMismatch:
        return None
    return value


def _is_date(value: str) -> bool:
    try:
        return COERCIONS["date"](value) is not None
    except TypeMismatch:
        return False


_BOUNDS: Final = (">", ">=", "<", "<=")
_OPERATORS: Final = ("==", "!=", *_BOUNDS, "in", "not in")


_REST: Final = "_haystack"
"""Metadata field for the other parts of a Haystack document: embedding, blob, ..."""
_RESERVED: Final = frozenset({"id", "_id", "title", "text", "contents", "metadata", _REST})
"""Metadata names with another meaning in exported documents."""


class KlsaDocumentStore:
    """Document store of Haystack: the index at the path HOME/NAME.

    path      path of the index; if there is none, the first `write_documents` builds it
    fields    declared metadata fields, such as "year:number"; other metadata is filterable if all
              its values have one type
    settings  settings of the build, such as `{"language": "german"}`

    The build learns from the documents of that first call. Later documents are searchable at once;
    `klsa_search.indexing.refit(path)` or `klsa-index refit` learns from them. A title in the
    metadata is the title of the document, and is searched. Safe to share between threads.
    """

    def __init__(
        self, path: str, fields: Sequence[str] = (), settings: Mapping[str, Any] | None = None
    ) -> None:
        self.path = path
        self.fields = list(fields)
        self.settings = dict(settings or {})
        self._index: Index | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, for pipelines in YAML."""
        arguments: dict[str, Any] = default_to_dict(
            self, path=self.path, fields=self.fields, settings=self.settings
        )
        return arguments

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KlsaDocumentStore:
        """Return an instance with these arguments."""
        store: KlsaDocumentStore = default_from_dict(cls, data)
        return store

    def index(self) -> Index | None:
        """Return a snapshot of the index, or None if nothing has been written yet."""
        if self._index is None and is_index(Path(self.path)):
            self._index = open_index(self.path)
        if self._index is None:
            return None
        self._index.refresh()
        return self._index.snapshot()

    def count_documents(self) -> int:
        """Return the number of documents."""
        index = self.index()
        return 0 if index is None else len(index)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that pass filters, all by default, in write order. FilterError."""
        index = self.index()
        if index is None:
            return []
        allowed = passing(index, filters) & index.arrays.live_docs()
        doc_ids = index.arrays.doc_ids_at(index.arrays.in_order(allowed))
        return [_haystack_document(document) for document in index.documents_at(doc_ids)]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents and return their number; they are durable and searchable on return.

        policy  how to treat an existing ID: OVERWRITE, SKIP, or FAIL, the default, which raises
                DuplicateDocumentError before anything is written
        """
        if not isinstance(documents, list) or not all(
            isinstance(document, Document) for document in documents
        ):
            raise ValueError("documents is not a list of Haystack Documents")
        index = self.index()
        existing = set() if index is None else set(index.ids())
        written: dict[str, StoredDocument] = {}
        for document in documents:
            exists = document.id in existing or document.id in written
            if exists and policy != DuplicatePolicy.OVERWRITE:
                if policy != DuplicatePolicy.SKIP:
                    raise DuplicateDocumentError(
                        f"document {document.id!r} already exists; write it with another policy"
                    )
                continue
            written[document.id] = _stored_document(document)
        if self._index is not None:
            self._index.add(written.values())
        elif written:
            path = Path(self.path).absolute()
            settings = {"fields": tuple(self.fields), **self.settings}
            self._index = build(written.values(), name=path.name, home=path.parent, **settings)
        return len(written)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; unknown IDs are ignored."""
        if self.index() is not None and self._index is not None:
            self._index.delete(document_ids)


@component
class KlsaRetriever:
    """Retriever of Haystack: the best documents of a store for a query, with scores.

    top_k       maximum number of documents
    filters     filters of Haystack; those passed to `run` replace them
    parameters  parameters of `Index.rank`, such as `{"ranker": "bm25"}`
    max_tokens  return passages, as many of the best as fit into this number of tokens, instead of
                documents; their meta has `document_id`, `span`, `page` and `heading`
    """

    def __init__(
        self,
        document_store: KlsaDocumentStore,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.document_store = document_store
        self.top_k = top_k
        self.filters = filters
        self.parameters = dict(parameters or {})
        self.max_tokens = max_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, for pipelines in YAML."""
        arguments: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            top_k=self.top_k,
            filters=self.filters,
            parameters=self.parameters,
            max_tokens=self.max_tokens,
        )
        return arguments

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KlsaRetriever:
        """Return an instance with these arguments."""
        parameters = data["init_parameters"]
        store = KlsaDocumentStore.from_dict(parameters["document_store"])
        data = {**data, "init_parameters": {**parameters, "document_store": store}}
        retriever: KlsaRetriever = default_from_dict(cls, data)
        return retriever

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        max_tokens: int | None = None,
    ) -> dict[str, list[Document]]:
        """Return the best documents. FilterError; QueryError for invalid parameters."""
        index = self.document_store.index()
        if index is None:
            return {"documents": []}
        mask = passing(index, self.filters if filters is None else filters)
        k = self.top_k if top_k is None else top_k
        max_tokens = self.max_tokens if max_tokens is None else max_tokens
        if max_tokens is not None:
            hits = index.search(
                query, k, mask=mask, group="passage", max_tokens=max_tokens, **self.parameters
            )
            return {"documents": list(map(_passage, hits))}
        doc_ids, scores = index.rank(query, k, mask=mask, **self.parameters)
        documents = index.documents_at(doc_ids.tolist())
        return {
            "documents": [
                replace(_haystack_document(document), score=float(score))
                for document, score in zip(documents, scores, strict=True)
            ]
        }


def passing(index: Index, filters: dict[str, Any] | None) -> DocumentMask:
    """Return a mask of documents that pass a Haystack filter: (max_doc,) bool. FilterError."""
    if not filters:
        return np.ones(index.max_doc, np.bool_)
    return mask_of(filter_of(filters, index.fields, _RESERVED), index.fields, index.max_doc).allowed


def _stored_document(document: Document) -> StoredDocument:
    parts = document.to_dict(flatten=False)
    meta, id_, content = (parts.pop(name) for name in ("meta", "id", "content"))
    title = meta.get("title")
    if isinstance(title, str) and title:
        del meta["title"]
    else:
        title = ""
    rest = {name: value for name, value in parts.items() if value is not None}
    if content is None:
        rest["content"] = None
    if hidden := {name: value for name, value in meta.items() if name in _RESERVED}:
        rest["meta"] = hidden
    plain = {name: value for name, value in meta.items() if name not in _RESERVED}
    metadata = {**plain, _REST: rest} if rest else plain
    return StoredDocument(id=id_, title=title, text=content or "", metadata=metadata)


def _passage(hit: Hit) -> Document:
    stored = StoredDocument(id=hit.id, title=hit.title, text=hit.text or "", metadata=hit.metadata)
    document = _haystack_document(stored)
    return replace(document, meta={**document.meta, **place_of(hit)}, score=hit.score)


def _haystack_document(document: StoredDocument) -> Document:
    meta = dict(without_vectors(document.metadata))
    rest = dict(meta.pop(_REST, {}))
    meta |= rest.pop("meta", {})
    if document.title:
        meta["title"] = document.title
    parts = {"id": document.id, "content": document.text, "meta": meta, **rest}
    return Document.from_dict(parts)
