"""Small collections of known structure, for tests of invariants."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from klsa_search.kernels.bm25 import average_length, idf_of, length_norms, quantised_length
from klsa_search.kernels.counts import CountsBuilder, TermCounts
from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import QueryKernel, TermWeighting
from klsa_search.kernels.weighting import bm25_weighting


def counts_of(*documents: str) -> TermCounts:
    """Counts of documents whose terms are separated by blanks."""
    builder = CountsBuilder()
    for document in documents:
        builder.add(document.split())
    return builder.finish()


def bm25_features(
    counts: TermCounts, *, k1: float, b: float, idf_power: float = 0.5, pairs: float = 0.0
) -> sparse.csr_array:
    """BM25 features of documents."""
    weighting = bm25_weighting(k1=k1, b=b, idf_power=idf_power)
    return weighting.document_features(counts, pairs)


def idf_of_counts(counts: TermCounts) -> npt.NDArray[np.float64]:
    """Idf of the terms of counts."""
    return idf_of(counts.document_frequencies, counts.matrix.shape[0])


def query_kernel(
    counts: TermCounts,
    *,
    k1: float = 1.2,
    b: float = 0.75,
    block_bits: int | None = None,
    weighting: TermWeighting | None = None,
    average: float | None = None,
) -> QueryKernel:
    """BM25 of counts, as an index has it; by a mean length of the grid, or the nearest."""
    if average is None:
        average = quantised_length(average_length(counts.lengths))
    norms = length_norms(counts.lengths, average, k1=k1, b=b)
    postings = Postings.of(counts.matrix, norms, k1, block_bits=block_bits)
    return QueryKernel.of(postings, weighting=weighting or TermWeighting())


def random_documents(size: int = 60, terms: int = 40, seed: int = 0) -> list[str]:
    """Documents of 3 to 30 terms with Zipf-like frequencies."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, terms + 1)
    weights /= weights.sum()
    return [
        " ".join(f"t{number:02d}" for number in rng.choice(terms, rng.integers(3, 31), p=weights))
        for _ in range(size)
    ]


def topic_documents(topics: int = 4, each: int = 12, seed: int = 1) -> list[str]:
    """Documents that each draw on the ten words of one topic and a few shared ones.

    Document d belongs to topic d // each; its words are named after the topic: "a3", "b7", ...
    """
    rng = np.random.default_rng(seed)
    documents = []
    for topic in range(topics):
        words = [f"{chr(ord('a') + topic)}{number}" for number in range(10)]
        for _ in range(each):
            own = rng.choice(words, 6, replace=False)
            shared = rng.choice([f"x{number}" for number in range(10)], 2, replace=False)
            documents.append(" ".join([*own, *shared]))
    return documents


TOPIC_WORDS = [f"word{number:02d}" for number in range(60)]
TOPIC_QUERIES = [
    "word01 word05",
    "word13 word20 word21",
    "word59",
    "word30 word40 word50",
    "none word02",
]


def topic_records(count: int = 150, seed: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Records of five topics; each has a few words of its topic, and three of any."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(first, first + count):
        topic = int(rng.integers(5))
        own = rng.choice(TOPIC_WORDS[topic * 12 : topic * 12 + 12], int(rng.integers(4, 12)))
        text = " ".join([*own, *rng.choice(TOPIC_WORDS, 3)])
        made.append(
            {"id": f"d{number}", "title": f"Topic {topic}", "text": text,
             "year": 2000 + number % 20, "kind": f"kind{number % 7}"}
        )  # fmt: skip
    return made


def cyclic_records(count: int = 80) -> list[dict[str, Any]]:
    """Records of three words, which come again after 7, 11 and 13 records."""
    return [
        {
            "id": f"d{number}",
            "text": f"word{number % 7} word{number % 11} word{number % 13}",
            "year": 2000 + number % 9,
        }
        for number in range(count)
    ]


@contextmanager
def as_if_large() -> Iterator[None]:
    """Build collections of any size as large ones are, that keep no eigenvectors beside a cut D."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klsa_search.indexing.weighing.SMALL", -1)
        yield
