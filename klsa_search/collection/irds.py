"""Data sets of ir_datasets, or whatever has `docs_iter`, as sources.

A document is a named tuple: `doc_id`, what `default_text()` says it is, and other fields. So are
queries, `query_id` and text, and judgements, `query_id`, `doc_id` and `relevance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Judgement, Query
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.extras import require
from klsa_search.errors import CollectionError

PREFIX: Final = "irds:"
"""Before the name of a data set, where a source is named by a text."""
_SAID: Final = frozenset({"doc_id", "title", "text", "default_text"})


def load(name: str) -> Any:
    """Load a data set by its name, which may download it; CollectionError if there is none."""
    require("irds")
    import ir_datasets

    try:
        return ir_datasets.load(name)
    except KeyError:
        raise CollectionError(
            f"{PREFIX}{name}: ir_datasets has no data set {name!r}; see the list at "
            "https://ir-datasets.com",
            field="source",
        ) from None


def collection(dataset: Any, on_error: str) -> OpenedCollection:
    """Make a collection of it, named as its id is; it has the queries and judgements it has."""
    id_ = dataset.dataset_id() if hasattr(dataset, "dataset_id") else type(dataset).__name__
    return OpenedCollection(
        f"{PREFIX}{id_}",
        "irds",
        on_error,
        partial(_documents, dataset),
        queries=partial(_queries, dataset),
        judgements=partial(_judgements, dataset),
    )


def _documents(dataset: Any, intake: Intake) -> Iterator[Document]:
    for number, held in enumerate(dataset.docs_iter(), start=1):
        fields = held._asdict()
        title = fields.get("title")
        title = title if isinstance(title, str) else ""
        yield Document(
            id=held.doc_id,
            title=title,
            text=_text(held).removeprefix(title).strip(),
            metadata={
                name: value
                for name, value in fields.items()
                if name not in _SAID and isinstance(value, str | int | float)
            },
            origin=f"document {number}",
        )


def _queries(dataset: Any) -> list[Query]:
    asked = dataset.queries_iter() if hasattr(dataset, "queries_iter") else ()
    return [Query(id=each.query_id, text=_text(each)) for each in asked]


def _judgements(dataset: Any) -> list[Judgement]:
    judged = dataset.qrels_iter() if hasattr(dataset, "qrels_iter") else ()
    return [
        Judgement(
            query_id=each.query_id,
            document_id=each.doc_id,
            grade=each.relevance,
            gain=max(each.relevance, 0),
        )
        for each in judged
    ]


def _text(held: Any) -> str:
    """What it is found by, as the data set says."""
    text: str = held.default_text() if hasattr(held, "default_text") else held.text
    return text
