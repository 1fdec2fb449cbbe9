"""Fields that hold HTML: those that settings name, or that the first documents show."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from klsa_search.collection.html_cells import HtmlCounts
from klsa_search.collection.model import Document
from klsa_search.storage.columns.declared import DeclaredFields

_log = logging.getLogger(__name__)

_RARE: Final = 20
"""Values for each one with HTML, up to which a field that is not read as HTML is reported."""


class HtmlFields:
    """The fields of a collection that are read as HTML.

    names      of the fields; None until the first documents show them: most of their values, by
               `holds_html`
    converted  fields whose HTML is text already, of documents that an index stores; None otherwise
    """

    def __init__(self, names: Sequence[str] | None, converted: Sequence[str] | None = None) -> None:
        self._detects = names is None and converted is None
        self.names = None if self._detects else tuple(names or ())
        self._converted = converted or ()
        self._counts = HtmlCounts()

    def stored(
        self, batches: Iterator[list[Document]], declared: DeclaredFields
    ) -> Iterator[list[Document]]:
        """Yield batches of documents as they are stored; `names` are known after the first.

        declared  gets the names
        """
        for batch in batches:
            if self._detects:
                self._counts.add(batch)
            if self.names is None:
                self.names = tuple(self._counts.fields(lambda html, values: 2 * html > values))
            declared.html = frozenset(self.names).difference(self._converted)
            yield list(map(declared.stored, batch))

    def report(self) -> tuple[str, ...]:
        """Log what was detected in all documents, and return the names."""
        names = self.names or ()
        if self._detects and names:
            _log.warning(
                "fields with HTML are read as text: %s; --html none keeps it (in Python html=())",
                ", ".join(names),
            )
        for name in self._counts.fields(lambda html, values: _RARE * html >= values > 0 < html):
            if name not in names:
                _log.warning(
                    "field %r: %s of %s values hold HTML, which is searched as it is; --html %s "
                    "reads it as text",
                    name,
                    f"{self._counts.html[name]:,}",
                    f"{self._counts.values[name]:,}",
                    name,
                )
        return names
