"""Texts of the searched fields of a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from klsa_search.collection.identifiers import READERS
from klsa_search.collection.model import Document
from klsa_search.collection.nested import value_at
from klsa_search.core.field_weights import SearchedFields


def field_text(value: Any) -> str:
    """Return the text of a metadata value.

    A string is itself, null and a missing value are empty, numbers and booleans are as JSON writes
    them. The values of a list or of an object follow each other on lines of their own.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return json.dumps(value)
    return "\n".join(filter(None, map(field_text, value)))


def searched_texts(document: Document, fields: SearchedFields) -> list[str]:
    """Return the text of each part of a document that is indexed, "" if it is not searched."""
    title, text = document.title, document.text
    if len(fields.names) == 2 and all(fields.weights):
        return [title, text]
    title, text = title if fields.weights[0] else "", text if fields.weights[-1] else ""
    metadata_texts = [field_text(value_at(document.metadata, name)) for name in fields.others]
    if fields.derived is not None:
        metadata_texts.append(READERS[fields.derived](f"{title}\n{text}"))
    return [title, *metadata_texts, text]


class AnalysedTexts(NamedTuple):
    """What the analysis needs of documents.

    parts      the text of each part, document by document
    languages  what a field says of the language of each document, "" without one; may be left out
               for an analyser of one language
    """

    parts: list[str]
    languages: Sequence[str] = ()


def analysed_texts(
    documents: Sequence[Document], fields: SearchedFields, language_field: str | None
) -> AnalysedTexts:
    """Return the texts of the parts of documents, and the languages that a field states."""
    parts = [text for document in documents for text in searched_texts(document, fields)]
    return AnalysedTexts(
        parts, [language_stated(document, language_field) for document in documents]
    )


def language_stated(document: Document, field: str | None) -> str:
    """Return what a field says of the language of a document, "" without one."""
    return "" if field is None else field_text(value_at(document.metadata, field))
