"""Documents without end that look, to a search engine, like the collection they were learnt from.

Kept are: how often each word occurs and what follows it (a draw is always a place in the original
text, never a table of probabilities), topics, events (many documents around one story), the spread
of lengths, words that come back within a document, and the growth of the vocabulary: where Heaps'
law asks for more words than the original has, they are composed, each at home in one topic.

The same seed gives the same documents, and N of them are the first N of any larger number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.corpora_model import SHORTEST, TOPICS, Ints, Model

MEAN_WORDS: Final = 83
_BATCH: Final = 8192  # documents made in lockstep; a part of what a seed means
_LONGEST: Final = 600
_SCATTER: Final = 1_000_003

# Where the next word comes from: it follows an occurrence of the last one, repeats one of this
# document, or is a fresh draw from the story, the topic, a second topic, or anywhere.
_FOLLOWS: Final = 0.55
_REPEATS: Final = 0.06
_STORY, _TOPIC, _SECOND = 0.25, 0.70, 0.82  # cumulative
_SKEW: Final = 3.0  # composed words are drawn at rank V·u^skew, u uniform


def documents(model: Model, count: int, seed: int) -> Iterator[str]:
    """Yield `count` texts; about 30,000 a second."""
    words = np.array(model.words, dtype=object)
    composer = _Composer(model)
    written = made = 0
    while made < count:
        random = np.random.default_rng([seed, 1, made])
        places, topics, lengths = _draw(model, random)
        flat = words[model.places[places]]
        rare = np.flatnonzero(random.random(len(flat)) < model.rare_share)
        home = np.repeat(topics, lengths)[rare]
        flat[rare] = composer.words(flat[rare], home, random.random(len(rare)), written)
        written += len(flat)
        texts, ends = flat.tolist(), np.cumsum(lengths).tolist()
        # A batch is always made whole, so that what it holds does not depend on `count`.
        for begin, end in zip([0, *ends], ends[: count - made], strict=False):
            yield " ".join(texts[begin:end])
        made += _BATCH


def _draw(model: Model, random: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """One batch: places of all words, document after document; topic and length of each."""
    lengths = _lengths(model, random)
    stories = random.integers(len(model.story_first), size=_BATCH)
    topics = model.story_topic[stories]
    seconds = model.story_topic[random.integers(len(model.story_first), size=_BATCH)]
    everywhere = np.zeros(_BATCH, np.int64)
    firsts = [model.story_first[stories], model.topic_first[topics], model.topic_first[seconds]]
    counts = [model.story_count[stories], model.topic_count[topics], model.topic_count[seconds]]
    table = _walk(
        model,
        lengths,
        np.stack([*firsts, everywhere]),
        np.stack([*counts, everywhere + len(model.places)]),
        random,
    )
    # Longest first was for the lockstep only.
    order = random.permutation(_BATCH)
    kept = lengths[order]
    begins = np.cumsum(kept) - kept
    step = np.arange(kept.sum()) - np.repeat(begins, kept)
    return table[step, np.repeat(order, kept)], topics[order], kept


def _lengths(model: Model, random: np.random.Generator) -> Ints:
    """Words of each document of a batch, most first: log-normal, as in the original."""
    spread = model.length_spread
    lengths = np.exp(random.normal(np.log(MEAN_WORDS) - spread**2 / 2, spread, _BATCH))
    return np.sort(np.clip(lengths, SHORTEST, _LONGEST).astype(np.int64))[::-1]


def _walk(
    model: Model, lengths: Ints, firsts: Ints, counts: Ints, random: np.random.Generator
) -> Ints:
    """Places (longest, batch) of the words; a column is a document, all of them in lockstep.

    firsts, counts  (4, batch) first place and number of places of what a fresh draw is from
    """
    table = np.zeros((lengths[0], _BATCH), np.int64)
    for step in range(lengths[0]):
        alive = np.searchsorted(-lengths, -step)
        column = np.arange(alive)
        how, where, at = random.random((3, alive))
        source = np.searchsorted([_STORY, _TOPIC, _SECOND], where)
        fresh = firsts[source, column] + (at * counts[source, column]).astype(np.int64)
        if step == 0:
            table[0] = fresh
            continue
        last = table[step - 1, :alive]
        again = model.same_first[last] + (at * model.same_count[last]).astype(np.int64)
        table[step, :alive] = np.where(
            how < _FOLLOWS,
            (model.same[again] + 1) % len(model.places),
            np.where(
                how < _FOLLOWS + _REPEATS, table[(where * step).astype(np.int64), column], fresh
            ),
        )
    return table


class _Composer:
    """Composed words: each the beginning of a real one with the ending of another."""

    def __init__(self, model: Model) -> None:
        long = [word for word in model.words if word.isalpha() and len(word) >= 7]
        # A beginning has four letters always, so that no two pairs make the same word.
        self._heads = sorted({word[:4] for word in long})
        self._tails = sorted({word[4:] for word in long})
        self._model = model

    def words(
        self, real: npt.NDArray[np.object_], topics: Ints, drawn: npt.NDArray[np.float64], read: int
    ) -> npt.NDArray[np.object_]:
        """Replace rare words of texts, `read` words into the collection.

        topics  of the documents they stand in;  drawn  uniform in [0, 1)
        None is replaced as long as the collection is no longer than the original.
        """
        model = self._model
        factor, exponent = model.growth
        wanted = (factor * max(read, 1) ** exponent - len(model.words)) / TOPICS
        if read <= len(model.places) or wanted < 1:
            return real
        rank = (wanted * drawn**_SKEW).astype(np.int64)
        heads, tails = self._heads, self._tails
        # A multiplier prime to the number of pairs scatters neighbouring ranks over all pairs.
        pair = (rank * TOPICS + topics) * _SCATTER % (len(heads) * len(tails))
        composed = np.empty(len(real), dtype=object)
        composed[:] = [heads[p % len(heads)] + tails[p // len(heads)] for p in pair.tolist()]
        return composed
