"""Data sets of ir_datasets, and other objects with `docs_iter`, as sources.

Documents are named tuples with `doc_id`, a text returned by `default_text()`, and other fields;
queries have `query_id` and a text; judgements have `query_id`, `doc_id` and `relevance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Judgement, Topic
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.reading_options import CheckedReadingOptions
from klsa_search.core.installation import require
from klsa_search.errors import CollectionError, FetchError

PREFIX: Final = "irds:"  # prefix of the name of a data set
_NOT_METADATA: Final = frozenset({"doc_id", "title", "text", "default_text"})


def load(name: str) -> Any:
    """Return a data set by its name, which may download it; CollectionError if unknown."""
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


def collection(dataset: Any, options: CheckedReadingOptions) -> OpenedCollection:
    """Return the data set as a collection of the same name, with its queries and judgements."""
    return OpenedCollection(
        f"{PREFIX}{_id(dataset)}",
        "irds",
        options,
        partial(_documents, dataset),
        queries=partial(_queries, dataset),
        judgements=partial(_judgements, dataset),
    )


def _documents(dataset: Any, intake: Intake) -> Iterator[Document]:
    for number, record in enumerate(_downloaded(dataset, "docs_iter"), start=1):
        fields = record._asdict()
        title = fields.get("title")
        title = title if isinstance(title, str) else ""
        yield Document(
            id=record.doc_id,
            title=title,
            text=_text(record).removeprefix(title).strip(),
            metadata={
                name: value
                for name, value in fields.items()
                if name not in _NOT_METADATA and isinstance(value, str | int | float)
            },
            origin=f"document {number}",
        )


def _queries(dataset: Any) -> list[Topic]:
    queries = _downloaded(dataset, "queries_iter")
    return [Topic(id=query.query_id, text=_text(query)) for query in queries]


def _judgements(dataset: Any) -> list[Judgement]:
    qrels = _downloaded(dataset, "qrels_iter")
    return [
        Judgement(
            query_id=record.query_id,
            document_id=record.doc_id,
            grade=record.relevance,
            gain=max(record.relevance, 0),
        )
        for record in qrels
    ]


def _downloaded(dataset: Any, method: str) -> Iterator[Any]:
    """Yield records of a data set, which may download them first; none without the method.

    FetchError if that fails.
    """
    if not hasattr(dataset, method):
        return
    try:
        yield from getattr(dataset, method)()
    except (OSError, RuntimeError, EOFError) as error:  # what ir_datasets raises
        raise FetchError(
            f"cannot download or read `{PREFIX}{_id(dataset)}` ({error}); check the network and "
            "the free space on the disk, then try again",
            field="source",
        ) from error


def _id(dataset: Any) -> str:
    return str(dataset.dataset_id()) if hasattr(dataset, "dataset_id") else type(dataset).__name__


def _text(record: Any) -> str:
    text: str = record.default_text() if hasattr(record, "default_text") else record.text
    return text
