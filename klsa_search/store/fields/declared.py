"""Declared fields: which documents fit them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from klsa_search.collection import Collection, Document
from klsa_search.collection.model import Refusing
from klsa_search.config import FieldType
from klsa_search.errors import CollectionError
from klsa_search.store.fields.values import (
    DECLARED,
    Misfit,
    elements,
    plain,
    taker,
    type_of,
)


class Declared:
    """The fields that must be columns, in one pass over the documents.

    types  by name; None until the first value of one that was declared without a type
    """

    def __init__(self, types: Mapping[str, FieldType | None]) -> None:
        self.types = dict(types)

    def fault(self, metadata: Mapping[str, Any]) -> str | None:
        """Say which value of the next document does not fit its field; None if all do."""
        if not self.types or not metadata:
            return None
        known, types = plain(metadata), {}
        for name, kind in self.types.items():
            for value in elements(known.get(name)):
                try:
                    kind = kind or type_of(value)
                    taker(kind, DECLARED, declared=True)(value)
                except Misfit as reason:
                    described = f"{kind} field" if kind else "field"
                    return f"the {described} {name!r} contains {shown(value)}, which is {reason}"
            types[name] = kind
        self.types.update(types)  # what is refused decides nothing
        return None


def fitting(collection: Collection, declared: Declared) -> Iterator[Document]:
    """Yield the documents that fit the declared fields, and have the collection refuse others.

    CollectionError where it cannot.
    """
    for document in collection.documents():
        fault = declared.fault(document.metadata)
        if fault is None:
            yield document
            continue
        message = f"{document.origin or 'document'}: document {document.id!r}: {fault}"
        if not isinstance(collection, Refusing):
            raise CollectionError(f"{message}; declare another type, or remove the declaration")
        collection.refuse(message)


def shown(value: object) -> str:
    """Write a value for a sentence."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:57]}..."
