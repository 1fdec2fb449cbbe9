"""Our own engine, through its front door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.engines import texts
from klsa_search import build, open_index
from klsa_search.core.parameters import RankerName

PACKAGES = ("klsa-search",)
_NAME = "corpus"


class Engine:
    """Default settings; the option is the ranker."""

    def __init__(self, folder: Path, stop_words: list[str], ranker: RankerName) -> None:
        self._folder, self._ranker = folder, ranker

    def build(self, corpus: Path) -> None:
        documents = ({"id": str(n), "text": text} for n, text in enumerate(texts(corpus)))
        build(documents, name=_NAME, home=self._folder)

    def open(self) -> None:
        self._index = open_index(self._folder / _NAME)
        if hasattr(self._index, "rank_many"):
            self.rank_all = self._rank_all

    def rank(self, query: str, k: int) -> Any:
        return self._index.rank(query, k, ranker=self._ranker)

    def _rank_all(self, queries: list[str], k: int) -> Any:
        return self._index.rank_many(queries, k, threads=1, ranker=self._ranker)

    def numbers(self, answer: Any) -> list[int]:
        return [int(number) for number in answer[0]]
