"""A sample of the texts of a collection, which tells its language and whether they are code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from klsa_search.analysis.language_detection import LONGEST, DetectedLanguage, detect_language
from klsa_search.analysis.languages import AUTO
from klsa_search.collection.identifiers import are_code
from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import searched_texts
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import SearchedFields

_LARGEST: Final = 512
_FEW: Final = 32


class TextSample:
    """Documents from all over a collection: each of the first, then at equal distances.

    The distance doubles whenever there are 512, so the sample depends on the collection alone.
    """

    def __init__(self, fields: SearchedFields) -> None:
        self._fields = fields
        self.texts: list[str] = []
        self._distance, self._seen = 1, 0
        self._found: DetectedLanguage | None = None

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents of the sample among the next ones of the collection."""
        for document in documents:
            if self._seen % self._distance == 0:
                text = "\n".join(part[:LONGEST] for part in searched_texts(document, self._fields))
                self.texts.append(text[:LONGEST])
                self._found = None
                if len(self.texts) == _LARGEST:
                    del self.texts[1::2]
                    self._distance *= 2
            self._seen += 1

    @property
    def is_thinned(self) -> bool:
        """Return whether the collection has more documents than the sample can hold."""
        return self._distance > 1

    def few(self) -> TextSample:
        """Return a sample of about 32 of the texts, for a guess that is checked later."""
        few = TextSample(self._fields)
        few.texts = self.texts[:: max(1, len(self.texts) // _FEW)]
        return few

    def language(self) -> DetectedLanguage:
        """Return the language of most of the text so far. Cost: 0.1 s, once for a sample."""
        if self._found is None:
            self._found = detect_language(self.texts)
        return self._found

    def completed(self, settings: Settings) -> Settings:
        """Return settings with what they leave to the texts: language and identifiers."""
        changes: dict[str, object] = {}
        if settings.language == AUTO:
            changes["language"] = self.language().language
        if settings.identifiers == "auto" and self.texts:
            kind = "parts" if are_code(self.texts) else "pairs"
            changes["identifiers"] = kind if settings.tokenizer is None else "off"
        return settings.model_copy(update=changes)
