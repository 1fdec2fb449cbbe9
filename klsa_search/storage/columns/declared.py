"""Declared fields, values that do not fit their field, and the forms of values in a source."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from klsa_search.collection.model import Collection, Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.text_cleaning import metadata_with_text, with_html_as_text
from klsa_search.core.build_settings import FieldSettings, FieldType, FormSettings
from klsa_search.errors import CollectionError
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.local_forms import (
    GENERAL,
    LocalForms,
    amount,
    local_date,
    number_in,
)
from klsa_search.storage.columns.values import (
    TypeMismatch,
    coercion,
    elements,
    plain,
    type_of,
    unit_of,
)


class DeclaredFields:
    """The declared fields, and how others are read, in one pass over the documents.

    types       of declared fields by name; None until the first value of a field that was declared
                without a type
    separators  of split fields by name
    forms       of dates and numbers
    html        names of fields whose HTML is read as text
    """

    def __init__(
        self,
        types: Mapping[str, FieldType | None],
        separators: Mapping[str, str] | None = None,
        forms: LocalForms = GENERAL,
        html: Names[str] = (),
    ) -> None:
        self.types = dict(types)
        self.separators = dict(separators or {})
        self.forms = forms
        self._units = {name: forms.unit(name) for name in types}
        self.html = frozenset(html)

    @classmethod
    def of(cls, settings: FieldSettings) -> Self:
        """Return the fields that settings declare, split and read as HTML."""
        return cls(
            settings.declared(), settings.separators(), forms_of(settings), settings.html or ()
        )

    def stored(self, document: Document) -> Document:
        """Return a document of a source as it is stored."""
        return self.divided(self.without_html(document))

    def without_html(self, document: Document, before: Document | None = None) -> Document:
        """Return a document with the HTML in its fields as text.

        before  the stored document, whose values are text already
        """
        if not self.html:
            return document
        return with_html_as_text(document, self.html.difference(_equal(document, before)))

    def divided(self, document: Document) -> Document:
        """Return a document with each text of a split field as a list of its parts.

        Blanks around parts are removed, and empty parts left out. Lists stay as they are.
        """
        if self.separators.keys().isdisjoint(document.metadata):
            return document
        return replace(document, metadata=self._divided(document.metadata))

    def _divided(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        divided = dict(metadata)
        for name, separator in self.separators.items():
            value = metadata.get(name)
            if isinstance(value, str):
                divided[name] = [text for part in value.split(separator) if (text := part.strip())]
        return divided

    def fault(self, metadata: Mapping[str, Any]) -> str | None:
        """Return which value of the next document does not fit its field, or None."""
        if not self.types or not metadata:
            return None
        existing = plain(self._divided(metadata_with_text(metadata, self.html)))
        types, units = {}, {}
        for name, kind in self.types.items():
            value = metadata.get(name)
            if isinstance(value, Mapping) and value:
                return (
                    f"the field {name!r} contains {shown(value)}, which is nested; declare its "
                    f"fields, as in `{name}.{next(iter(value))}`"
                )
            values = elements(existing.get(name))
            unit = units[name] = self._units[name] or unit_of(values)
            for value in values:
                try:
                    kind = kind or type_of(value)
                    coercion(kind, declared=True, forms=self.forms, unit=unit)(value)
                except TypeMismatch as reason:
                    described = f"{kind} field" if kind else "field"
                    return f"the {described} {name!r} contains {shown(value)}, which is {reason}"
            types[name] = kind
        self.types.update(types)  # a rejected document decides no type
        self._units.update(units)
        return None


def _equal(document: Document, before: Document | None) -> list[str]:
    if before is None:
        return []
    names = [name for name in ("title", "text") if getattr(document, name) == getattr(before, name)]
    stored = before.metadata
    same = (name for name, value in document.metadata.items() if stored.get(name) == value)
    return [*names, *same]


def forms_of(settings: FieldSettings) -> LocalForms:
    """Return the forms of dates and numbers that settings name."""
    return LocalForms(settings.dates, settings.decimal, settings.units)


def fitting(
    collection: Collection,
    declared: DeclaredFields,
    converted: Callable[[Document], Document] | None = None,
) -> Iterator[Document]:
    """Yield the documents that fit, as they are or converted; have the collection skip others.

    Raise CollectionError if it cannot skip.
    """
    documents = collection.documents()
    for document in documents if converted is None else map(converted, documents):
        fault = declared.fault(document.metadata)
        if fault is None:
            yield document
            continue
        message = f"{document.origin or 'document'}: document {document.id!r}: {fault}"
        if not isinstance(collection, OpenedCollection):
            raise CollectionError(f"{message}; declare another type, or remove the declaration")
        collection.intake.refuse(message)


def shown(value: object) -> str:
    """Return a value as text for a message."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:57]}..."


@dataclass(frozen=True, slots=True)
class FieldWarning:
    """A value that is not of its field's type. The document is stored unchanged; filters, sorting
    and facets treat the value as missing.

    id       ID of the document
    field    name of the field
    message  document, field, value and type in a sentence
    """

    id: str
    field: str
    message: str


def field_warnings(
    documents: Sequence[Document], fields: Fields, declared: Container[str], forms: LocalForms
) -> Iterator[FieldWarning]:
    """Yield a warning for each field of a document with a value that does not fit, the first.

    fields    of the index with these documents
    declared  fields to skip: their values were checked already
    Cost: 2 µs a value.
    """
    types: dict[str, FieldType] = {name: field.type for name, field in fields.items()}
    coercions = {
        name: coercion(kind, declared=False, forms=forms, unit=forms.unit(name))
        for name, kind in types.items()
    }
    for document in documents:
        for name, value_or_list in plain(document.metadata).items():
            if name in declared or name not in types:
                continue
            for value in elements(value_or_list):
                try:
                    coercions[name](value)
                except TypeMismatch as mismatch:
                    message = (
                        f"document {document.id!r}: the {types[name]} field {name!r} has "
                        f"{shown(value)}, which is {mismatch}: it counts as missing"
                    )
                    yield FieldWarning(document.id, name, message)
                    break


_log = logging.getLogger(__name__)

_TEXTS: Final = ("title", "text")


class SourceForms:
    """Converts the documents of a source to forms that an index reads: see `converted`.

    settings  how the source writes them
    fields    of the index
    """

    def __init__(self, settings: FormSettings, fields: Fields) -> None:
        self._settings, self._fields = settings, fields
        self._html = frozenset(settings.html or ())
        self._missing = set(self._html)

    def converted(self, document: Document) -> Document:
        """Return a document with HTML as text, dates in ISO 8601 and JSON numbers.

        Dates are converted in date fields and those that the index does not have, numbers in number
        fields. What has another form stays as it is.
        """
        self._missing -= {*document.metadata, *(n for n in _TEXTS if getattr(document, n))}
        if self._html:
            document = with_html_as_text(document, self._html)
        if not (self._settings.dates or self._settings.decimal):
            return document
        converted = {name: self._value(name, value) for name, value in document.metadata.items()}
        return replace(document, metadata=converted)

    def report(self) -> None:
        """Log which fields named for HTML no document had."""
        for name in sorted(self._missing):
            _log.warning("html: no document has a field %r; check its name", name)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._value(name, element) for element in value]
        if not isinstance(value, str):
            return value
        kind = self._fields[name].type if name in self._fields else None
        is_new = kind is None and name not in self._fields.unfilterable
        if self._settings.dates and (kind == "date" or is_new):
            return local_date(value.strip(), self._settings.dates) or value
        if self._settings.decimal and kind == "number":
            read = amount(value.strip())
            if read is not None and read.unit in ("", self._fields.forms.unit(name)):
                number = number_in(read.number, self._settings.decimal)
                return value if number is None else number
        return value
