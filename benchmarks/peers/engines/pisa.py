"""PISA: an inverted index in C++, block-max WAND, through pyterrier-pisa."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyterrier_pisa import PisaIndex, _pisathon

from benchmarks.peers.engines import texts

PACKAGES = ("pyterrier-pisa",)


class Engine:
    """Stems with Porter's second algorithm; stop words are left out of queries only.

    `rank` calls PISA itself: the data frames of `transform` would cost ten times the search.
    """

    def __init__(self, folder: Path, stop_words: list[str]) -> None:
        warnings.simplefilter("ignore")
        self._index = PisaIndex(str(folder), stemmer="porter2", stops="none", threads=1)
        self._stop_words = stop_words
        self._retrievers: dict[int, Any] = {}

    def build(self, corpus: Path) -> None:
        self._index.index({"docno": str(n), "text": t} for n, t in enumerate(texts(corpus)))
        self.open()  # makes the blocks and their bounds

    def open(self) -> None:
        self._retriever(10)

    def rank(self, query: str, k: int) -> Any:
        retriever = self._retriever(k)
        which, numbers = np.empty(k, np.int32), np.empty(k, object)
        ranks, scores = np.empty(k, np.int32), np.empty(k, np.float32)
        found = _pisathon.retrieve(
            retriever._ctxt,  # noqa: SLF001 - has no public name
            retriever.query_algorithm.value,
            [(0, query)],
            k=k,
            threads=1,
            query_weighted=0,
            pretokenised=False,
            result_qidxs=which,
            result_docnos=numbers,
            result_ranks=ranks,
            result_scores=scores,
        )
        return numbers[:found], scores[:found]

    def rank_all(self, queries: list[str], k: int) -> Any:
        frame = pd.DataFrame({"qid": [str(n) for n in range(len(queries))], "query": queries})
        return self._retriever(k).transform(frame)

    def numbers(self, answer: Any) -> list[int]:
        return [int(number) for number in answer[0]]

    def _retriever(self, k: int) -> Any:
        """Retriever of depth k; a list of stop words is taken only after it was made."""
        if k not in self._retrievers:
            retriever = self._index.bm25(k1=1.2, b=0.75, num_results=k, threads=1)
            retriever.stops = _Stops(self._stop_words)
            retriever.reset_retrieval_context()
            self._retrievers[k] = retriever
        return self._retrievers[k]


class _Stops(tuple[str, ...]):
    """Stop words as PISA's wrapper wants them: to be iterated, and a part of a key."""
