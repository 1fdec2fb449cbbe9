"""Corpora to measure with: Reuters-21578, and any number of documents like it.

    python -m benchmarks.corpora reuters OUT [--data DIR]
    python -m benchmarks.corpora generate N OUT [--seed 0] [--data DIR]
    python -m benchmarks.corpora queries OUT [--count 1000] [--seed 0] [--data DIR]

The first two write JSON lines of id, title and text (gzipped if OUT ends in .gz), the last lines of
a number, a tab and a title of Reuters, chosen at random. Reuters is looked for in
../shared/datasets/reuters21578, or below $KLSA_DATASETS; the same seed gives the same lines.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import svds

from studies import command_parser
from studies.datasets import read_reuters, reuters_folder


def write_reuters(out: Path, folder: Path) -> None:
    with _opened(out) as file:
        for story in read_reuters(folder):
            line = {"id": story.id, "title": story.title, "text": story.text}
            file.write(json.dumps(line) + "\n")


def write_generated(count: int, out: Path, folder: Path, seed: int) -> None:
    model = fit((story.text for story in read_reuters(folder)), seed)
    with _opened(out) as file:
        for number, text in enumerate(documents(model, count, seed), start=1):
            # The generator's alphabet has nothing that JSON escapes.
            file.write(f'{{"id": "{number}", "title": "", "text": "{text}"}}\n')


def write_queries(out: Path, folder: Path, count: int, seed: int) -> None:
    titles = sorted({story.title for story in read_reuters(folder)} - {""})
    chosen = np.random.default_rng(seed).choice(len(titles), count, replace=False)
    with _opened(out) as file:
        for number, title in enumerate(np.array(titles, dtype=object)[chosen], start=1):
            file.write(f"{number}\t{title}\n")


def _opened(out: Path) -> IO[str]:
    """Open for writing; gzipped fast rather than small."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix != ".gz":
        return out.open("w", encoding="utf-8")
    return gzip.open(out, "wt", compresslevel=3, encoding="utf-8")


def main() -> None:
    parser = command_parser("benchmarks.corpora", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("reuters", "generate", "queries"):
        command = commands.add_parser(name)
        if name == "generate":
            command.add_argument("count", type=int, metavar="N")
        if name == "queries":
            command.add_argument("--count", type=int, default=1000)
        command.add_argument("out", type=Path, metavar="OUT")
        command.add_argument("--data", type=Path, help="folder of the files of Reuters-21578")
        if name != "reuters":
            command.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = reuters_folder(options.data)
    match options.command:
        case "reuters":
            write_reuters(options.out, folder)
        case "generate":
            write_generated(options.count, options.out, folder, options.seed)
        case _:
            write_queries(options.out, folder, options.count, options.seed)


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


if __name__ == "__main__":
    main()
