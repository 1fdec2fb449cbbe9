"""tantivy: an inverted index in Rust, block-max WAND."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tantivy

from benchmarks.peers.engines import texts

PACKAGES = ("tantivy",)
_HEAP = 1_000_000_000


class Engine:
    """Stems with Porter's second algorithm; k1 and b are fixed at 1.2 and .75.

    Hits are not counted, or nothing could be skipped. The body is not stored.
    """

    def __init__(self, folder: Path, stop_words: list[str]) -> None:
        self._folder = folder
        self._analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(255))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.custom_stopword(stop_words))
            .filter(tantivy.Filter.stemmer("english"))
            .build()
        )

    def build(self, corpus: Path) -> None:
        fields = tantivy.SchemaBuilder()
        fields.add_integer_field("number", fast=True)
        fields.add_text_field("body", tokenizer_name="klsa", index_option="freq")
        index = tantivy.Index(fields.build(), path=str(self._folder))
        index.register_tokenizer("klsa", self._analyzer)
        writer = index.writer(heap_size=_HEAP, num_threads=1)
        for number, text in enumerate(texts(corpus)):
            writer.add_document(tantivy.Document(number=number, body=text))
        writer.commit()
        writer.wait_merging_threads()

    def open(self) -> None:
        self._index = tantivy.Index.open(str(self._folder))
        self._index.register_tokenizer("klsa", self._analyzer)
        self._schema = self._index.schema
        self._searcher = self._index.searcher()

    def rank(self, query: str, k: int) -> Any:
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "body", term, "freq"))
            for term in self._analyzer.analyze(query)
        ]
        hits = self._searcher.search(tantivy.Query.boolean_query(terms), k, count=False).hits
        addresses = [address for _, address in hits]
        return hits, self._searcher.fast_field_values("number", addresses)

    def numbers(self, answer: Any) -> list[int]:
        return list(answer[1])
