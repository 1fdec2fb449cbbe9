"""A small index is built, searched and written to: real calls for `tools.fuzz_native`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

import klsa_search
from klsa_search import _native
from klsa_search.analysis.segmentation import all_characters, ascii_characters
from klsa_search.lowrank.sparse_expansion import pack_table

_SUBJECTS = ("The engine", "A cold pump", "Every valve", "Some lanes of the road", "No garden")
_VERBS = ("overheats", "leaks", "drips slowly onto the old floor", "needs care")
_ENDS = (
    "when coolant is low",
    "in winter; see E-1043/2",
    "since 1998 — don't wait",
    "日本語の検索",
)
_QUERIES = ("engine coolant", "cold pumps leak", '"needs care" garden', "valve OR road", "検索")


def _documents(first: int, count: int) -> Iterable[dict[str, Any]]:
    for i in range(first, first + count):
        subject, verb, end = _SUBJECTS[i % 5], _VERBS[i % 4], _ENDS[i % 3 if i % 7 else 3]
        text = f"{subject} {verb} {end}. " + f"½ litre of water {i} was lost.\n\n" * (i % 5)
        yield {"id": str(i), "title": subject, "text": text, "kind": "draft" if i % 2 else "final"}


def _search(index: klsa_search.Index) -> None:
    for query in _QUERIES:
        for ranker in (None, "bm25"):
            options = {} if ranker is None else {"ranker": ranker}
            index.rank(query, k=3, **options)
            index.search(query, k=5, filter="kind = draft", snippet_length=60, **options)
    index.search_many(_QUERIES, k=3)
    index.rank_many(_QUERIES, k=20)
    index.search("engine coolant", k=4, explain=True, quality=True, highlight=True)
    index.search('+pum* "cold pump"', facets=["kind"])
    index.suggest("cold pu")
    index.explain("engine coolant", "1")


def _lengths(text: str) -> list[int]:
    return [len(word) for word in text.split()]


def _call_directly() -> None:
    """Call what only large builds or rare texts call."""
    columns, weights = np.array([0, 2, 1, 2], np.int32), np.array([1, 2, 3, 4], np.float32)
    begins, ends = np.array([0, 2], np.int64), np.array([2, 4], np.int64)
    features = _native.Features(columns, weights, 3)
    features.find_edge(begins, ends, 1, np.zeros(2, np.int64))
    for real in (np.float32, np.float64):
        features = _native.Features(columns, weights.astype(real), 3)
        block, sums = np.ones((2, 2), real), np.zeros((3, 2), real)
        features.add_to_features(begins, ends, block, sums)
        features.add_to_documents(begins, ends, sums, block)
    rows = sparse.csr_array(np.arange(20, dtype=np.float32).reshape(4, 5))
    pack_table(rows, 3, 1, np.array([9, 7, 5, 8, 6]))
    words = np.array([0, 1, 2, 1, 0, 3, 1, -1, 2, 2], np.int32)
    lengths, ranks = np.array([1, 4, 2, 3], np.int32), np.array([2, 0, 1, 3], np.int32)
    codes, sizes = _native.encode_documents(words, lengths, ranks, 2)
    content = _native.DocumentBytes([(codes, np.append(0, np.cumsum(sizes)))])
    forward = _native.ForwardCodes(content, 2)
    numbers, terms = np.array([0, 1], np.int64), np.array([0, 2], np.int64)
    forward.count_term(numbers, 0, np.array([2, 1], np.int64))
    forward.find_phrase(numbers, terms, -1, 1)
    forward.count_phrase(numbers, terms, np.array([2, 1], np.int64), 0)
    for document in numbers:
        forward.find_words(int(document), terms)
    for text in ("It's  a ﬁne\n day: don't. 2nd half", "½ 日本語の検索 café 🇩🇪🙂", "plain"):
        line = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        characters = ascii_characters() if text.isascii() else all_characters()
        _native.fold_text(line, characters)
        _native.locate_words(line, characters, np.array([0, 2, 3], np.int32))
    forward.count_parts(numbers, 8)
    spelling = _native.TermLetters(line, np.array([0, 2, 5], np.int64))
    spelling.near(0, 2, line, (1, 5), 2, 0, 3)
    forms = _native.QueryForms(100, 8, 8)
    forms.add("pump", 1, 1, False, False, 0, False, [0], [], [], [], {"pump": "pumps"})
    forms.variants("pump")
    words = _native.WordNumbers(100, True)
    words.number(["It's one, two; C++", "drei für café", ""], len, _lengths)
    rows, query = np.ones((3, 20), np.int8), np.full(20, 2, np.int8)
    scales, cosines = np.ones(3, np.float32), np.zeros(2, np.float32)
    _native.add_cosines(rows, np.array([0, 1, 1], np.int32), scales, query, np.float32(1), cosines)
    tokens = np.array([0, 1, 0], np.int32)
    starts, ends = np.array([0, 4, 6], np.int32), np.array([3, 5, 11], np.int32)
    _native.best_passage(line.repeat(4), tokens, starts, ends, np.array([1.0, 0.5]), 12)


def use_everything() -> None:
    """Use an index in most ways that call the extension module."""
    _call_directly()
    # The engine ranks however few documents there are.
    with (
        tempfile.TemporaryDirectory() as home,
        patch("klsa_search.search.ranking.searcher.EXHAUSTIVE_LIMIT", 0),
    ):
        with klsa_search.build(_documents(0, 15), name="small", home=home) as index:
            _search(index)
            index.scores("engine coolant", exact=True)
            index.add(_documents(15, 6))
            index.delete(["3", "16"])
            index.add(_documents(5, 2))
            _search(index)
        documents = list(_documents(0, 12))
        with klsa_search.build(documents, name="two", home=home, partitions=2, workers=1) as index:
            _search(index)
