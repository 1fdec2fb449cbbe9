"""What the generator keeps of a collection: its words in place, sorted by topic and by story."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import svds

TOPICS: Final = 128
SHORTEST: Final = 8
"""Words of the shortest story that is learnt from."""

_LATENT: Final = 64
_ROUNDS: Final = 12  # of k-means; few stories move afterwards
_SEEN_RARELY: Final = 2  # occurrences up to which a word counts as rare
_WORD: Final = re.compile(r"[a-z0-9]+(?:[.,'/-][a-z0-9]+)*")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Model:
    """The original of T word places, S stories and C topics, laid out for drawing."""

    words: list[str]  # the vocabulary, sorted
    places: Ints  # (T,) word at each place
    same: Ints  # (T,) places, grouped by topic and word
    same_first: Ints  # (T,) where in `same` the group of this place begins
    same_count: Ints  # (T,) size of that group
    story_first: Ints  # (S,) place where a story begins
    story_count: Ints  # (S,) its words
    story_topic: Ints  # (S,)
    topic_first: Ints  # (C,) place where a topic begins
    topic_count: Ints  # (C,) its words
    length_spread: float  # standard deviation of the logarithm of a story's length
    growth: tuple[float, float]  # K and β of Heaps' law V(n) = K·n^β, n words read
    rare_share: float  # of all words, those that are rare


def fit(texts: Iterable[str], seed: int) -> Model:
    """Learn a model; about 20 seconds for Reuters-21578."""
    split = [found for text in texts if len(found := _WORD.findall(text.lower())) >= SHORTEST]
    words = sorted({word for story in split for word in story})
    number = {word: i for i, word in enumerate(words)}
    read = np.array([number[word] for story in split for word in story])
    lengths = np.array([len(story) for story in split])
    topics = _topics(read, lengths, len(words), seed)

    order = np.argsort(topics, kind="stable")
    counts, topics = lengths[order], topics[order]
    begins = np.cumsum(counts) - counts
    moved = (np.cumsum(lengths) - lengths)[order] - begins
    places = read[np.arange(len(read)) + np.repeat(moved, counts)]

    group = np.repeat(topics, counts) * len(words) + places
    same = np.argsort(group, kind="stable")
    _, first, which, size = np.unique(
        group[same], return_index=True, return_inverse=True, return_counts=True
    )
    same_first, same_count = np.empty_like(same), np.empty_like(same)
    same_first[same], same_count[same] = first[which], size[which]
    topic_count = np.bincount(np.repeat(topics, counts), minlength=TOPICS)
    frequency = np.bincount(read)
    return Model(
        words=words,
        places=places,
        same=same,
        same_first=same_first,
        same_count=same_count,
        story_first=begins,
        story_count=counts,
        story_topic=topics,
        topic_first=np.cumsum(topic_count) - topic_count,
        topic_count=topic_count,
        length_spread=float(np.log(lengths).std()),
        growth=_growth(read),
        rare_share=float(frequency[frequency <= _SEEN_RARELY].sum() / len(read)),
    )


def _topics(read: Ints, lengths: Ints, vocabulary: int, seed: int) -> Ints:
    """Topic of each story (S,): spherical k-means on a truncated SVD of tf-idf."""
    stories = np.repeat(np.arange(len(lengths)), lengths)
    counts = sparse.csr_array(
        (np.ones(len(read), np.float32), (stories, read)), shape=(len(lengths), vocabulary)
    )
    counts.sum_duplicates()
    spread = np.bincount(counts.indices, minlength=vocabulary)
    useful = np.flatnonzero((spread >= 3) & (spread <= len(lengths) / 5))
    features = counts[:, useful]
    features.data = (1 + np.log(features.data)) * np.log(len(lengths) / spread[useful])[
        features.indices
    ].astype(np.float32)
    features = sparse.diags_array(1 / _norms(features)) @ features
    random = np.random.default_rng([seed, 0])
    left, values, _ = svds(features, k=_LATENT, rng=random)
    points: Any = left * values
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    centres = points[random.choice(len(points), TOPICS, replace=False)]
    for _ in range(_ROUNDS):
        chosen = np.argmax(points @ centres.T, axis=1)
        centres = np.stack([points[chosen == topic].sum(axis=0) for topic in range(TOPICS)])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9)
    topics: Ints = np.argmax(points @ centres.T, axis=1)
    return topics


def _norms(features: sparse.csr_array) -> npt.NDArray[np.float32]:
    squares: npt.NDArray[np.float32] = (features * features).sum(axis=1)
    return np.maximum(np.sqrt(squares), np.float32(1e-9))


def _growth(read: Ints) -> tuple[float, float]:
    """K and β of Heaps' law, through the vocabulary at a quarter and at the end of the text."""
    quarter = len(read) // 4
    early, late = len(np.unique(read[:quarter])), len(np.unique(read))
    exponent = float(np.log(late / early) / np.log(len(read) / quarter))
    return late / len(read) ** exponent, exponent
