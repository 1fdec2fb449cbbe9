"""Documents of one source whose HTML, dates or numbers are written unlike those of the index."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from klsa_search.collection.html_cells import with_html_as_text
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import FormSettings
from klsa_search.storage.columns.amounts import amount
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.local_forms import local_date, number_in

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
        return replace(document, metadata=self._converted(document.metadata))

    def report(self) -> None:
        """Log which fields named for HTML no document had."""
        for name in sorted(self._missing):
            _log.warning("html: no document has a field %r; check its name", name)

    def _converted(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._value(name, value) for name, value in metadata.items()}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._value(name, element) for element in value]
        if not isinstance(value, str):
            return value
        kind = self._fields[name].type if name in self._fields else None
        is_new = kind is None and name not in self._fields.others
        if self._settings.dates and (kind == "date" or is_new):
            return local_date(value.strip(), self._settings.dates) or value
        if self._settings.decimal and kind == "number":
            read = amount(value.strip())
            if read is not None and read.unit in ("", self._fields.forms.unit(name)):
                number = number_in(read.number, self._settings.decimal)
                return value if number is None else number
        return value
