"""A sample of the texts of a collection: their language, whether they are code, fields of HTML."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from klsa_search.analysis.language_detection import (
    MAX_CHARACTERS,
    MIN_SHARE,
    DetectedLanguage,
    detect_languages,
)
from klsa_search.analysis.languages import AUTO, languages, stated_language
from klsa_search.analysis.searched_text import are_code, language_stated, searched_texts
from klsa_search.collection.model import Document
from klsa_search.collection.text_cleaning import holds_html
from klsa_search.core.config import Settings
from klsa_search.core.lazy import lazy_property
from klsa_search.storage.columns.declared import DeclaredFields

_LARGEST: Final = 512


class TextSample:
    """Documents from all over a collection: each of the first, then at equal distances.

    The distance doubles whenever there are 512, so the sample depends on the collection alone.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.texts: list[str] = []
        self._stated: list[str] = []
        self._distance, self._seen = 1, 0

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents of the sample among the next ones of the collection."""
        for document in documents:
            if self._seen % self._distance == 0:
                parts = searched_texts(document, self._settings.searched_fields)
                text = "\n".join(part[:MAX_CHARACTERS] for part in parts)
                self.texts.append(text[:MAX_CHARACTERS])
                self._stated.append(language_stated(document, self._settings.language_field))
                if len(self.texts) == _LARGEST:
                    del self.texts[1::2], self._stated[1::2]
                    self._distance *= 2
            self._seen += 1

    @lazy_property
    def languages(self) -> Sequence[DetectedLanguage]:
        """The languages of all texts, the commonest first; `auto` if the texts are too few.

        Those that a field states for a tenth of the documents; else, those that are detected.
        Cost: 0.2 s, once.
        """
        return self._stated_languages() or detect_languages(self.texts)

    def _stated_languages(self) -> list[DetectedLanguage]:
        stated = Counter(map(stated_language, self._stated))
        supported = {name: count for name, count in stated.items() if name in languages()}
        total = sum(supported.values())
        return [
            DetectedLanguage(name, round(count / total, 2))
            for name, count in sorted(supported.items(), key=lambda item: (-item[1], item[0]))
            if count >= MIN_SHARE * total
        ]

    def completed(self, settings: Settings) -> Settings:
        """Return settings with what they leave to the texts: language and identifiers."""
        changes: dict[str, object] = {}
        if settings.language == AUTO:
            changes["language"] = ",".join(entry.language for entry in self.languages)
        if settings.identifiers == "auto" and self.texts:
            kind = "parts" if are_code(self.texts) else "pairs"
            changes["identifiers"] = kind if settings.tokenizer is None else "off"
        return settings.model_copy(update=changes)


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
        self._values, self._html = Counter[str](), Counter[str]()  # values, and those with HTML

    def stored(
        self, batches: Iterator[list[Document]], declared: DeclaredFields
    ) -> Iterator[list[Document]]:
        """Yield batches of documents as they are stored; `names` are known after the first.

        declared  gets the names
        """
        for batch in batches:
            if self._detects:
                self._count(batch)
            if self.names is None:
                names = {name for name, html in self._html.items() if 2 * html > self._values[name]}
                if "text" in names and self._html["title"]:
                    names.add("title")  # WordPress writes &amp; in titles, too
                self.names = tuple(sorted(names))
            declared.html = frozenset(self.names).difference(self._converted)
            yield list(map(declared.stored, batch))

    def _count(self, documents: Iterable[Document]) -> None:
        for document in documents:
            texts = ("title", document.title), ("text", document.text)
            for name, value in (*texts, *document.metadata.items()):
                for cell in value if isinstance(value, list | tuple) else (value,):
                    if isinstance(cell, str) and cell and not cell.isspace():
                        self._values[name] += 1
                        self._html[name] += holds_html(cell)

    def report(self) -> tuple[str, ...]:
        """Log what was detected in all documents, and return the names."""
        names = self.names or ()
        if self._detects and names:
            _log.warning(
                "fields with HTML are read as text: %s; --html none keeps it (in Python html=())",
                ", ".join(names),
            )
        for name, html in sorted(self._html.items()):
            if name not in names and html > 0 and self._values[name] <= _RARE * html:
                _log.warning(
                    "field %r: %s of %s values hold HTML, which is searched as it is; --html %s "
                    "reads it as text",
                    name,
                    f"{html:,}",
                    f"{self._values[name]:,}",
                    name,
                )
        return names
