"""How many of many shards must be asked, where documents lie in them by chance or by topic.

    python -m studies.shards_to_ask INDEX QUERIES [--shards 100 1000] [--count 500] [--json FILE]

INDEX is the folder of an index with nothing written since it was built, QUERIES a file of lines of
a number, a tab and a text, as `python -m benchmarks.corpora` writes both. The first ten results of
the whole index are what is to be found, by BM25 and by the default ranking, and the seeds of the
latter. Shards are asked in the order of each summary of `shard_selection`, and of an oracle that
knows where the results are: how many until nine of the ten are found, and until all are, for the
middle, the mean and the 95th of a hundred queries; and the number that is enough for 90, 99 and
100 % of all results if it is the same for every query.

The last line asks so many shards alone, for seeds too, and counts what of the first ten of all is
still among the first ten.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search import Index, open_index
from klsa_search.arrays import Positions, Scores
from klsa_search.search.engine import Mask
from klsa_search.search.query import QueryTerms, TermNumbers
from klsa_search.search.rankers.klsa import mix_of
from studies.shard_selection import Ints, Summaries, at_random, by_rows, by_topic, kept_within

FIRST: Final = 10
SHARES: Final = (0.9, 0.99, 1.0)
PARTS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the shards that are asked alone."""


@dataclass(frozen=True)
class Wanted:
    """A query and what asking all shards gives it.

    terms    numbers of its terms, repeated as they are asked for
    bm25     positions of its first ten by BM25
    tenth    score of the last of them, in steps
    default  of its first ten by the default ranking
    seeds    of that
    weights  of these: their scores by BM25, sharpened; without the power of their coverage
    """

    terms: list[int]
    bm25: Positions
    tenth: int
    default: Positions
    seeds: Positions
    weights: Scores

    @property
    def query(self) -> QueryTerms:
        return QueryTerms.of(self.terms)

    def results(self) -> dict[str, Positions]:
        return {"bm25": self.bm25, "default": self.default, "seeds": self.seeds}


def wanted(index: Index, texts: Sequence[str]) -> Iterator[Wanted]:
    """Ask the whole index; queries of which it knows no term are left out."""
    numbers = TermNumbers(index.analyzer, index.arrays.vocabulary)
    z = index.settings.z
    for text in texts:
        terms = [number for number in numbers.of(text) if number >= 0]
        if not terms:
            continue
        bm25, steps, _ = index.arrays.engine.steps(terms, FIRST)
        default, _ = index.rank(text, FIRST, operators=False)
        seeds, weights = index.rank(text, z, ranker="bm25", operators=False)
        weights = (weights / weights[0]) ** index.settings.sharpness
        yield Wanted(terms, bm25, int(steps[-1]), default, seeds, weights)


@dataclass
class Ranks:
    """At which place of the order of shards each result lies, from 1 on, by query."""

    of_query: list[Ints] = field(default_factory=list)

    def add(self, scores: Scores, where: Ints) -> None:
        """Ask shards from the largest score on, and by their number where scores are the same."""
        places = np.empty(len(scores), np.int64)
        places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        self.of_query.append(np.sort(places[where]))

    def until(self, share: float) -> Ints:
        """Shards that each query asks until it has so much of its results."""
        return np.array([ranks[enough(len(ranks), share)] for ranks in self.of_query])

    def for_all(self, share: float) -> int:
        """The number of shards that finds so much of all results, the same for each query."""
        ranks = np.sort(np.concatenate(self.of_query))
        return int(ranks[enough(len(ranks), share)])

    def told(self) -> list[float]:
        """Median, mean and 95th percentile until nine of ten, and until all; three for all."""
        found: list[float] = []
        for share in (0.9, 1.0):
            asked = self.until(share)
            found += [float(np.median(asked)), float(asked.mean())]
            found.append(float(np.percentile(asked, 95, method="higher")))
        return found + [self.for_all(share) for share in SHARES]


def enough(count: int, share: float) -> int:
    """Place, from 0 on, of the last of so many that is needed."""
    return int(np.ceil(share * count - 1e-9)) - 1


def oracle(where: Ints, shards: int) -> Scores:
    """How many of the results lie in each shard."""
    return np.bincount(where, minlength=shards).astype(np.float64)


def compared(asked: Sequence[Wanted], index: Index, summaries: Summaries) -> dict[str, Any]:
    """Shards to ask by each summary, for each of what is wanted; and until it is certain."""
    ranks: dict[str, dict[str, Ranks]] = {}
    certain, reached = [], []
    cut = index.arrays.cut
    assert cut is not None
    for one in asked:
        scores = summaries.scores(one.query)
        certain.append(int((scores["bounds"] >= one.tenth).sum()))
        rows = by_rows(cut, one.seeds, one.weights, summaries.labels, summaries.shards)
        reached.append(int((rows > 0).sum()))
        for what, positions in one.results().items():
            where = summaries.labels[positions]
            ways = {"oracle": oracle(where, summaries.shards), **scores}
            if what == "default":
                ways["rows"] = rows
            for way, given in ways.items():
                ranks.setdefault(what, {}).setdefault(way, Ranks()).add(given, where)
    return {
        "shards_to_ask": {w: {way: r.told() for way, r in of.items()} for w, of in ranks.items()},
        "certain": _three(certain),
        "rows_reach": _three(reached),
    }


def _three(values: Sequence[int]) -> list[float]:
    last = float(np.percentile(values, 95, method="higher"))
    return [float(np.median(values)), float(np.mean(values)), last]


def alone(asked: Sequence[Wanted], index: Index, summaries: Summaries) -> list[float]:
    """What of the first ten by default is among those of some shards alone, for each of PARTS.

    Chosen by their bounds; in both rounds, so that the seeds are theirs as well.
    """
    snapshot = index.arrays
    mix = mix_of(snapshot, index.settings)
    found = []
    for one in asked:
        order = np.argsort(-summaries.bounds(one.query), kind="stable")
        shares = []
        for part in PARTS:
            chosen = np.zeros(summaries.shards, np.bool_)
            chosen[order[: max(1, round(part * summaries.shards))]] = True
            some = replace(snapshot, living=Mask(chosen[summaries.labels])).expanding
            assert some is not None
            (top,) = some.top([one.terms], FIRST, mix)
            assert top is not None
            shares.append(np.isin(one.default, top.positions).mean())
        found.append(shares)
    return [float(share) for share in np.mean(found, axis=0)]


def study(index: Index, texts: Sequence[str], shards: int, seed: int) -> dict[str, Any]:
    """All figures of one index divided into so many shards, in both ways."""
    snapshot = index.arrays
    latent, cut = snapshot.latent, snapshot.cut
    if latent is None or cut is None or len(snapshot.bm25.postings.parts) > 1:
        raise SystemExit(f"{index.name} is no index as built by default: build it again")
    asked = list(wanted(index, texts))
    rows: dict[str, Any] = {}
    for name, labels in (
        ("random", at_random(len(snapshot), shards, seed)),
        ("topic", by_topic(latent.documents, shards, seed)),
    ):
        summaries = Summaries(snapshot, labels, shards, seed)
        sizes = np.bincount(labels, minlength=shards)
        rows[name] = {
            "queries": len(asked),
            "sizes": [int(sizes.min()), int(sizes.max())],
            "bytes": summaries.bytes,
            "postings_bytes": snapshot.bm25.postings.parts[0].postings.entries.nbytes,
            "kept_within": kept_within(cut, labels),
            **compared(asked, index, summaries),
            "alone": alone(asked, index, summaries),
        }
        show(index, name, shards, rows[name])
    return rows


def show(index: Index, name: str, shards: int, row: dict[str, Any]) -> None:
    low, high = row["sizes"]
    print(
        f"\n{index.name}: {len(index):,} documents in {shards:,} shards by {name}, {low} to {high}"
        f" each; {row['queries']} queries\n{row['kept_within']:.1%} of the entries of rows are of"
        f" the same shard; postings {row['postings_bytes'] / 1e6:.2f} MB"
    )
    print("summaries (MB):", {way: round(b / 1e6, 3) for way, b in row["bytes"].items()})
    for key in ("certain", "rows_reach"):
        print("{}: median {:.0f}, mean {:.1f}, 95th {:.0f}".format(key, *row[key]))
    print(f"{'':18}{'nine of ten':>22}{'all ten':>24}{'for 90, 99, 100 % of all':>28}")
    for what, ways in row["shards_to_ask"].items():
        for way, told in ways.items():
            figures = "{:8.0f}{:8.1f}{:7.0f} {:8.0f}{:8.1f}{:7.0f} {:10}{:8}{:8}".format(*told)
            print(f"{what:8}{way:10}{figures}")
    print("asked alone       " + "".join(f"{part:8.0%}" for part in PARTS))
    print("of the first ten  " + "".join(f"{share:8.3f}" for share in row["alone"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--shards", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--count", type=int, default=500, help="queries, the first of the file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = options.queries.read_text(encoding="utf-8").splitlines()[: options.count]
    texts = [line.partition("\t")[2] for line in lines]
    with open_index(options.index) as index:
        found = {n: study(index, texts, n, options.seed) for n in options.shards}
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
