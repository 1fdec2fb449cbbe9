"""Documents and queries of the golden answers.

All of it is drawn by `random.Random.random`, whose numbers are the same in every version of
Python, so the questions rest on this module alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from klsa_search import Document, Index, build

T = TypeVar("T")

_TOPICS = {
    "engines": "engine piston cylinder valve coolant radiator pump gasket camshaft exhaust turbo",
    "roads": "road bridge asphalt traffic lane junction tunnel kerb signal pavement",
    "gardens": "garden soil seed compost flower shrub hedge lawn orchard pruning",
    "music": "melody rhythm violin chord orchestra concert singer piano harmony tempo chorus",
    "medicine": "patient fever vaccine dosage surgeon clinic infection tablet",
    "networks": "packet router socket latency bandwidth firewall protocol server gateway",
    "kitchens": "oven recipe flour butter sauce pepper kettle spoon pastry vinegar onion",
    "weather": "storm rainfall thunder frost drought humidity breeze cloud forecast blizzard",
    "finance": "invoice credit interest budget dividend ledger mortgage currency auditor pension",
    "ships": "harbour anchor vessel cargo captain rudder hull tide lighthouse sailor deck",
}
_COMMON = """
    check clean repair measure open close carry replace inspect remove install adjust small large
    heavy old new broken quick slow hot cold wet dry report manual guide problem method result test
    part side season morning people house water time work start stop early late common rare
"""
_SUFFIXES = ("", "", "", "s", "s", "ing", "ed", "er")
_OPENINGS = ("The", "A", "Every", "No", "This", "Another", "Some", "One")
_ODD = (
    "café naïve résumé",
    "E-1043/2 and SUP-1058",
    "see `pump_off()` in **bold**",
    "日本語の検索エンジン",
    "<b>not</b> markup &amp; co",
    "ﬁne ligature ½ litre",
    "C++ and .NET 4.8",
    "covid19 on-line wi-fi",
    "# Heading\n\n* item one\n* item two",
    "[a link](https://example.org/x?y=1)",
)
_TAGS = ("red", "green", "blue", "draft", "final", "archive")
DOCUMENTS, QUERIES = 420, 500
_DIMENSION = 16


class Question(NamedTuple):
    """A query, and the other arguments of `Index.search`."""

    text: str
    options: Mapping[str, Any]


class World(NamedTuple):
    """An index of the golden answers: how it is made in a folder, and its questions."""

    make: Callable[[Path], Index]
    questions: Sequence[Question]


class _Draw:
    """Draws from one stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def number(self, most: int) -> int:
        """Return a number from 0 to `most` - 1."""
        return int(self._random() * most)

    def pick(self, choices: Sequence[T], skew: float = 1.0) -> T:
        """Return one of some values; with a larger skew, more often one of the first."""
        return choices[int(len(choices) * self._random() ** skew)]

    def happens(self, share: float) -> bool:
        return self._random() < share

    def word(self, topic: str) -> str:
        word = (
            self.pick(_TOPICS[topic].split(), 1.5)
            if self.happens(0.5)
            else self.pick(_COMMON.split())
        )
        return word + self.pick(_SUFFIXES)

    def spoilt(self, word: str) -> str:
        """Return a word with a typing error: two letters swapped, one left out or one doubled."""
        at = 1 + self.number(max(1, len(word) - 2))
        if at + 1 >= len(word):
            return word + word[-1]
        kind = self.number(3)
        if kind == 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        return word[:at] + word[at + 1 :] if kind == 1 else word[:at] + word[at] + word[at:]


def documents(count: int = DOCUMENTS, sentences: int = 7) -> list[Document]:
    """Return the documents; each but a few is about one topic, with a second one mixed in."""
    draw, topics = _Draw(1), tuple(_TOPICS)
    made = []
    for number in range(count):
        topic, second = draw.pick(topics), draw.pick(topics)
        title = " ".join(draw.word(topic) for _ in range(2 + draw.number(3))).capitalize()
        text = []
        for _ in range(1 + draw.number(sentences)):
            words = [
                draw.word(second if draw.happens(0.2) else topic)
                for _ in range(4 + draw.number(12))
            ]
            text.append(f"{draw.pick(_OPENINGS)} {' '.join(words)}.")
        if draw.happens(0.1):
            text.append(draw.pick(_ODD))
        metadata: dict[str, Any] = {
            "year": 1990 + draw.number(35),
            "price": draw.number(20_000) / 100,
            "topic": topic,
            "tags": [tag for tag in _TAGS if draw.happens(0.25)],
            "day": f"20{10 + draw.number(15):02}-{1 + draw.number(12):02}-{1 + draw.number(28):02}",
        }
        for name in ("price", "day"):
            if draw.happens(0.1):
                del metadata[name]
        made.append(
            Document(id=f"{topic[:2]}{number}", title=title, text=" ".join(text), metadata=metadata)
        )
    return made


def _vector(draw: _Draw, topic: str) -> list[float]:
    """Return a vector near to those of a topic."""
    home = tuple(_TOPICS).index(topic)
    return [(1.0 if place == home else 0.0) + draw.number(100) / 150 for place in range(_DIMENSION)]


def _condition(draw: _Draw) -> str:
    year, tag, topic = 1990 + draw.number(35), draw.pick(_TAGS), draw.pick(tuple(_TOPICS))
    return draw.pick(
        (
            f"year >= {year}",
            f"year {year} TO {year + 8}",
            f"tags = {tag}",
            f"tags != {tag} AND price < {draw.number(200)}",
            f"topic IN [{topic}, {draw.pick(tuple(_TOPICS))}]",
            f"topic CONTAINS {topic[1:4]} OR tags = {tag}",
            f"day >= 20{10 + draw.number(15)}-06-01",
            f"NOT (topic = {topic} OR year < {year})",
            "price NOT EXISTS",
        )
    )


def _operators(first: str, second: str, topic: str) -> tuple[str, ...]:
    return (
        f'"{first} {second}"',
        f"+{first} {second}",
        f"{first} -{second}",
        f"title:{first}",
        f"{first[:4]}*",
        f"+{first[:3]}* -{second}",
        f'+"{first} {second}" {topic}',
        f"-title:{second} {first}",
        f"topic_{first}",
        "E-1043/2",
        "wi-fi on-line",
        "C++",
    )


def questions(
    *, supports_all: bool = True, vectors: bool = False, passages: bool = False
) -> list[Question]:
    """Return the questions, the same ones for every index but for what they can ask of it only.

    supports_all  whether to ask for other rankers, boosts, `exact` and qualities
    vectors       whether half of the questions have a vector
    passages      whether half of them ask for passages
    """
    draw, topics = _Draw(2), tuple(_TOPICS)
    asked = []
    for number in range(QUERIES):
        kind, topic = number % 20, draw.pick(topics)
        words = [draw.word(topic) for _ in range(1 + draw.number(3))]
        options: dict[str, Any] = {}
        if kind in (2, 3):  # long
            words += [draw.word(topic) for _ in range(4 + draw.number(20))]
            words += [draw.pick(("how", "does", "the", "with", "of", "and")) for _ in range(4)]
        elif kind in (4, 5, 6):  # operators
            first, *others = words
            second = others[0] if others else draw.word(topic)
            words = [draw.pick(_operators(first, second, topic))]
        elif kind in (7, 8):  # typos
            words[0] = draw.spoilt(words[0])
        elif kind in (9, 10):
            options["filter"] = _condition(draw)
            if draw.happens(0.2):
                words = []
        elif kind == 11:
            options["sort"] = draw.pick(
                (["year:desc"], ["price:asc"], ["topic:asc", "year:asc"], ["day:desc"])
            )
        elif kind == 12:
            options["facets"] = draw.pick((["topic"], ["tags", "year"], ["day", "price"]))
        elif kind == 13:
            options |= {"offset": 10 * draw.number(4), "k": 5 + draw.number(10)}
        elif kind == 14:
            words[-1], options["prefix"] = words[-1][: 2 + draw.number(4)], "last"
        elif kind == 15:
            options["match"] = "all"
        elif kind == 16:
            options |= {"highlight": True, "snippet_length": 60 + draw.number(200)}
        elif kind == 17:
            options["ranker"] = draw.pick(
                ("bm25", "bm25", "rm3", "rocchio") if supports_all else ("bm25",)
            )
        elif kind == 18 and supports_all:
            options |= draw.pick(({"boosts": "title^3"}, {"exact": True}, {"alpha": 0.9}, {"z": 5}))
        elif kind == 19:
            options |= draw.pick(
                ({"distinct": "topic"}, {"min_score": 0.5}, {"quality": supports_all})
            )
        if vectors and draw.happens(0.5):
            options["vector"] = {"topics": _vector(draw, topic)}
        if passages and not (options.keys() & {"sort", "distinct"}) and draw.happens(0.5):
            options["group"] = "passage"
        if number % 10 == 1:
            options |= {"explain": True, "k": 4}
        asked.append(Question(" ".join(words), options))
    return asked


def _plain(home: Path) -> Index:
    return build(documents(), name="plain", home=home)


def _written(home: Path) -> Index:
    """Build from two thirds, then add the rest, replace, patch and delete."""
    given = documents()
    index = build(given[:280], name="written", home=home)
    for start in range(280, len(given), 20):
        index.add(given[start : start + 20])
    deleted = {one.id for one in given[::13]}
    index.delete(deleted)
    index.add([replace(one, text=one.text + " Mended engines.") for one in given[5::29]])
    for one in given[7::31]:
        if one.id not in deleted:
            index.patch(one.id, {"year": 2030})
    return index


def _with_passages(home: Path) -> Index:
    return build(documents(140, sentences=40), name="passages", home=home, passages=60)


def _with_vectors(home: Path) -> Index:
    draw = _Draw(3)
    given = [
        replace(
            one,
            metadata={**one.metadata, "_vectors": {"topics": _vector(draw, one.metadata["topic"])}},
        )
        for one in documents()
    ]
    return build(given, name="vectors", home=home)


def _in_partitions(home: Path) -> Index:
    return build(documents(), name="partitions", home=home, partitions=4, workers=1)


def _restricted(home: Path) -> Index:
    return _plain(home).restricted("year >= 2000 AND tags != draft")


WORLDS: dict[str, World] = {
    "plain": World(_plain, questions()),
    "written": World(_written, questions()),
    "passages": World(_with_passages, questions(passages=True)),
    "vectors": World(_with_vectors, questions(vectors=True)),
    "partitions": World(_in_partitions, questions(supports_all=False)),
    "restricted": World(_restricted, questions()),
}
