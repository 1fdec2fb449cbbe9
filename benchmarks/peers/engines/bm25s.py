"""bm25s with numba: scores made at build time, all added up at query time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bm25s
import Stemmer
from bm25s.tokenization import Tokenizer

from benchmarks.peers.engines import texts

PACKAGES = ("bm25s", "numba", "PyStemmer")


class Engine:
    """The same terms as ours, but for the words joined by an apostrophe."""

    def __init__(self, folder: Path, stop_words: list[str]) -> None:
        self._folder = folder
        stemmer = Stemmer.Stemmer("porter")
        self._tokenizer = Tokenizer(splitter=r"[^\W_]+", stopwords=stop_words, stemmer=stemmer)

    def build(self, corpus: Path) -> None:
        tokens = self._tokenizer.tokenize(
            list(texts(corpus)), return_as="tuple", show_progress=False
        )
        model = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
        model.index(tokens, show_progress=False)
        model.save(self._folder)
        self._tokenizer.save_vocab(self._folder)

    def open(self) -> None:
        self._tokenizer.load_vocab(self._folder)
        self._model = bm25s.BM25.load(self._folder)
        self._model.backend = "numba"
        self.rank("oil", 1)

    def rank(self, query: str, k: int) -> Any:
        return self.rank_all([query], k)

    def rank_all(self, queries: list[str], k: int) -> Any:
        tokens = self._tokenizer.tokenize(queries, update_vocab=False, show_progress=False)
        return self._model.retrieve(
            tokens, k=k, show_progress=False, n_threads=1, backend_selection="numba"
        )

    def numbers(self, answer: Any) -> list[int]:
        return [int(n) for n, s in zip(answer[0][0], answer[1][0], strict=True) if s > 0]
