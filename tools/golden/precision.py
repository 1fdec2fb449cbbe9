"""MAP of BM25, the published method and the default on the test collections."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from klsa_search import build
from klsa_search.collection import Collection, open_collection
from klsa_search.evaluation.measures import Judge, rank_best

ROOT = Path(__file__).parents[2].parent / "shared" / "collections"
TARGETS = ("cran", "cran-1837", "cisi", "cacm", "med")
"""Read by name; the others are folders in the form of BEIR."""


def collections() -> list[str]:
    """Return the names of all collections, or an empty list if their folder is missing."""
    more = sorted(path.name for path in (ROOT / "more").glob("*/") if path.is_dir())
    return [*TARGETS, *more] if ROOT.is_dir() else []


def measured(name: str) -> dict[str, float]:
    """Return MAP at depth 1,000, to four digits, by system."""
    if name in TARGETS:
        collection = open_collection(name, data=[ROOT])
    else:
        collection = open_collection(ROOT / "more" / name)
    figures = {}
    with tempfile.TemporaryDirectory() as home:
        with build(collection, name="default", home=home) as index:
            for ranker in ("bm25", "klsa"):
                figures[ranker] = _map(collection, index, ranker)
        if name in TARGETS:
            with build(collection, name="paper", home=home, preset="paper") as index:
                figures["paper"] = _map(collection, index, None)
    return figures


def _map(collection: Collection, index: object, ranker: str | None) -> float:
    judge = Judge(collection.judgements(), measures=("map",))
    judged = frozenset(judge.query_ids)
    queries = [query for query in collection.queries() if query.id in judged]
    run = rank_best(index, queries, **({"ranker": ranker} if ranker else {}))
    values = judge.measure(run).values("map")
    return round(sum(values) / len(values), 4)


def run(names: Sequence[str], kept: Path, *, write: bool) -> int:
    """Measure collections, and write or compare the figures; return the number that differ."""
    unknown = set(names) - set(collections())
    if unknown or not collections():
        print(f"no collections `{', '.join(sorted(unknown))}` in {ROOT}: nothing is measured")
        return 1
    before = json.loads(kept.read_text()) if kept.exists() else {}
    differing = 0
    for name in names or collections():
        now = measured(name)
        differs = before.get(name) != now
        differing += differs
        print(name, now, f"was {before.get(name)}" if differs else "as before", flush=True)
        if write:
            before[name] = now
            kept.write_text(json.dumps(before, indent=1, sort_keys=True) + "\n")
    return 0 if write else differing
