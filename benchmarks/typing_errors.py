"""Search as people type: MRR of the right document for queries with typing errors, by kind.

    python -m benchmarks.typing_errors [NAME ...] [--queries N] [--data FOLDER]

Queries are words of titles of a made shop of 20,000 products (`shop`), or those of a judged
collection below FOLDER, several times if there are few. In each query one word, drawn by a seed,
gets an error; `none` are the queries as they are. Cells have MRR@10 of the queries that can have
the error without and with corrections, if they are ten or more.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search import Index, build
from klsa_search.core.parameters import MatchName, SpellingName
from studies import command_parser
from studies.datasets import collections_home
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Task, heading, row

PRODUCTS: Final = 20_000
DEPTH: Final = 10
LEAST: Final = 10
MATCHES: Final[tuple[MatchName, ...]] = ("any", "all")
SPELLINGS: Final[tuple[SpellingName, ...]] = ("off", "auto")
SHOP: Final = "shop"
COLLECTIONS: Final = ("medquad", "awsdocs", "cosqa", "lohelp-de", "lohelp-fi", "lohelp-ko")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BRANDS = _words(
    "Nike Adidas Samsung Sony Philips Bosch Lenovo Apple Canon Makita Logitech Garmin Puma Asus "
    "Siemens Braun Dyson Nikon Fender Yamaha Lego Shimano Osprey Salomon Tefal Krups Acer Xiaomi"
)
_TYPES = {
    "running shoes": "clothing", "rain jacket": "clothing", "summer dress": "clothing",
    "bicycle helmet": "sports", "yoga mat": "sports", "tennis racket": "sports",
    "backpack": "sports", "sleeping bag": "sports", "laptop": "computers",
    "gaming mouse": "computers", "mechanical keyboard": "computers", "phone case": "phones",
    "smartphone": "phones", "tablet": "phones", "headphones": "audio",
    "bluetooth speaker": "audio", "turntable": "audio", "coffee machine": "kitchen",
    "frying pan": "kitchen", "toothbrush": "bathroom", "television": "video",
    "digital camera": "video", "washing machine": "household", "vacuum cleaner": "household",
    "cordless drill": "tools", "screwdriver set": "tools", "garden hose": "garden",
    "lawnmower": "garden", "acoustic guitar": "music", "building blocks": "toys",
}  # fmt: skip
_COLOURS = _words("black white red blue green silver grey yellow orange purple brown pink")
_EXTRAS = _words(
    "waterproof wireless lightweight foldable rechargeable portable professional adjustable "
    "breathable stainless ergonomic compact vintage premium organic insulated washable"
)
_SIZES = ("32 GB", "64GB", "128 GB", "256GB", "55 inch", "65 inch", "75 inch", "500 ml", "18V")
_SYLLABLES = _words("ba co da fe ga lo mi no pa re sa te vo zu lin mar ton ver den sol")
_REMARKS = (
    "Dries quickly and is safe to use.", "Machine washable.", "With a case for phones.",
    "Heads and tails for every sale.", "A game for mice and men.", "Cameras capture each moment.",
)  # fmt: skip
_NEAR = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wqwrytyiouopsadgfhjkxzcbvm", strict=False))


class Known(NamedTuple):
    """A query, and the documents that answer it."""

    query: str
    relevant: frozenset[str]


def products(draw: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the products of the shop; each has a title and a text of its own."""
    series = sorted({"".join(draw.choices(_SYLLABLES, k=draw.choice((2, 3)))) for _ in range(2000)})
    for number in range(PRODUCTS):
        kind = draw.choice([*_TYPES])
        brand, colour = draw.choice(_BRANDS), draw.choice(_COLOURS)
        extras, size = draw.sample(_EXTRAS, 3), draw.choice(_SIZES)
        model = f"{draw.choice('ABCDEGKMRSTX')}{draw.randrange(10, 10_000)}"
        others = ", ".join(draw.sample([*_TYPES], 2))
        yield {
            "id": f"P-{number}",
            "title": f"{brand} {draw.choice(series).capitalize()} {kind} {extras[0]} {colour} "
            f"{size} {model}",
            "text": f"{extras[1].capitalize()} and {extras[2]} {kind} by {brand} in {colour}, for "
            f"{_TYPES[kind]}. {draw.choice(_REMARKS)} Model {model}. Goes with {others}.",
            "price": draw.randrange(500, 100_000) / 100,
        }


def shop_queries(draw: random.Random, number: int) -> Iterator[Known]:
    """Yield two or three words of titles, with the products that have all of them there."""
    titles = {row["id"]: row["title"].lower() for row in products(random.Random(50))}
    for title in draw.sample([*titles.values()], number):
        kind = max((one for one in _TYPES if one in title), key=len)
        brand, series, *rest = title.replace(kind, "").split()
        size = " ".join(rest[2:-1])
        before = draw.choice((brand, series, rest[1], size, f"{brand} {rest[0]}"))
        query = f"{before} {kind}"
        relevant = (id_ for id_, one in titles.items() if all(f"{word} " in one for word in (
            *before.split(), kind)))  # fmt: skip
        yield Known(query, frozenset(relevant))


def judged_queries(task: Task, draw: random.Random, number: int) -> list[Known]:
    """Return a number of queries of a collection, with their relevant documents."""
    relevant = defaultdict[str, set[str]](set)
    for judgement in task.judgements:
        if judgement.grade > 0:
            relevant[judgement.query_id].add(judgement.document_id)
    queries = [Known(one.text, frozenset(relevant[one.id])) for one in task.queries
               if one.id in relevant]  # fmt: skip
    draw.shuffle(queries)
    return (queries * -(-number // len(queries)))[:number]


def one_edit(word: str, draw: random.Random) -> str:
    """Drop, double, add or replace a letter, the last two by a neighbour on the keyboard."""
    at = draw.randrange(1, len(word))
    near = _NEAR.get(word[at].lower()) or draw.choice(word)
    return word[:at] + draw.choice(["", word[at] * 2, near + word[at], near]) + word[at + 1 :]


def two_edits(word: str, draw: random.Random) -> str:
    """Two errors."""
    return one_edit(one_edit(word, draw), draw)


def transposition(word: str, draw: random.Random) -> str:
    """Exchange two letters."""
    places = [at for at in range(1, len(word) - 1) if word[at] != word[at + 1]]
    if not places:
        return word
    at = draw.choice(places)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _in_one_word(words: list[str], draw: random.Random, change: Callable[..., str]) -> list[str]:
    places = [at for at, word in enumerate(words) if word.isalpha() and len(word) > 4]
    if not places:
        return words
    at = draw.choice(places)
    return [*words[:at], change(words[at], draw), *words[at + 1 :]]


def join(words: list[str], draw: random.Random) -> list[str]:
    """Write two words of letters as one."""
    pairs = [
        at
        for at in range(len(words) - 1)
        if all(word.isalpha() and len(word) > 2 for word in words[at : at + 2])
    ]
    if not pairs:
        return words
    at = draw.choice(pairs)
    return [*words[:at], words[at] + words[at + 1], *words[at + 2 :]]


def split(words: list[str], draw: random.Random) -> list[str]:
    """Write a long word as two."""
    places = [at for at, word in enumerate(words) if word.isalpha() and len(word) > 6]
    if not places:
        return words
    at = draw.choice(places)
    middle = draw.randrange(3, len(words[at]) - 2)
    return [*words[:at], words[at][:middle], words[at][middle:], *words[at + 1 :]]


def misspelt_join(words: list[str], draw: random.Random) -> list[str]:
    """Write two words as one, with an error in it."""
    return _with_error(words, join(words, draw), 1, draw)


def misspelt_split(words: list[str], draw: random.Random) -> list[str]:
    """Write a long word as two, with an error in one of them."""
    return _with_error(words, split(words, draw), 2, draw)


def _with_error(
    words: list[str], changed: list[str], number: int, draw: random.Random
) -> list[str]:
    """Return changed words with an error in one of those that differ first.

    number  of words that differ
    """
    if changed == words:
        return words
    pairs = zip(changed, words, strict=False)
    first = next(at for at, (new, old) in enumerate(pairs) if new != old)
    at = first + draw.randrange(number)
    return [*changed[:at], one_edit(changed[at], draw), *changed[at + 1 :]]


def unfinished(words: list[str], draw: random.Random) -> list[str]:
    """Leave out the end of the last word, and what follows it."""
    places = [at for at, word in enumerate(words) if word.isalpha() and len(word) > 4]
    if not places:
        return words
    at = places[-1]
    return [*words[:at], words[at][: draw.randrange(3, len(words[at]))]]


def digits(words: list[str], draw: random.Random) -> list[str]:
    """Write digits and letters together or apart."""
    for at, (word, following) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if word.isdecimal() and following.isalpha():
            return [*words[:at], word + following, *words[at + 2 :]]
        begin = len(word) - len(word.lstrip("0123456789"))
        if begin and word[begin:].isalpha():
            return [*words[:at], word[:begin], word[begin:], *words[at + 1 :]]
    return words


KINDS: Final[Mapping[str, Callable[[list[str], random.Random], list[str]]]] = {
    "none": lambda words, draw: words,
    "one edit": lambda words, draw: _in_one_word(words, draw, one_edit),
    "two edits": lambda words, draw: _in_one_word(words, draw, two_edits),
    "transposition": lambda words, draw: _in_one_word(words, draw, transposition),
    "join": join,
    "split": split,
    "misspelt join": misspelt_join,
    "misspelt split": misspelt_split,
    "unfinished": unfinished,
    "digits": digits,
}


def with_errors(queries: list[Known], kind: str) -> list[Known]:
    """Return the queries that can have an error of a kind, with it."""
    draw, changed = random.Random(kind), []
    for query, relevant in queries:
        words = KINDS[kind](query.split(), draw)
        if kind == "none" or words != query.split():
            changed.append(Known(" ".join(words), relevant))
    return changed


def mean_reciprocal_rank(
    index: Index,
    queries: Sequence[Known],
    spelling: SpellingName,
    match: MatchName,
) -> float:
    """Return the mean of 1 / rank of the first right document, 0 beyond `DEPTH`."""
    ranks = (
        next((1 / hit.rank for hit in hits if hit.id in known.relevant), 0.0)
        for known in queries
        for hits in [index.search(known.query, DEPTH, spelling=spelling, match=match)]
    )
    return sum(ranks) / max(len(queries), 1)


def main() -> None:
    parser = command_parser("benchmarks.typing_errors", __doc__)
    parser.add_argument("names", nargs="*", default=[SHOP, *COLLECTIONS], metavar="NAME")
    parser.add_argument("--queries", type=int, default=200, metavar="N")
    parser.add_argument("--data", type=Path, default=collections_home(), metavar="FOLDER")
    options = parser.parse_args()
    heading("queries", "match", *KINDS)
    for name in options.names:
        draw = random.Random(51)
        if name == SHOP:
            documents: Any = list(products(random.Random(50)))
            queries = [*shop_queries(draw, options.queries)]
        else:
            task = task_of(name, options.data)
            documents, queries = task.documents, judged_queries(task, draw, options.queries)
        with tempfile.TemporaryDirectory() as home, build(documents, name=name, home=home) as index:
            for match in MATCHES:
                cells = []
                for kind in KINDS:
                    known = with_errors(queries, kind)
                    off, on = (mean_reciprocal_rank(index, known, one, match) for one in SPELLINGS)
                    cells.append(f"{off:.3f} → {on:.3f}" if len(known) >= LEAST else "")
                row(name, match, *cells)


if __name__ == "__main__":
    main()
