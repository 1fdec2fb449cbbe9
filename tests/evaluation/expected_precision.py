"""Expected average precision of each judged query of four collections, as last measured.

`python -m tests.evaluation.expected_precision FOLDER` measures again and writes
expected_precision.json, which contains query identifiers and figures only. FOLDER contains cran,
cisi, cacm and med.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.evaluation.measures import Judge, rank_best

FILE = Path(__file__).with_name("expected_precision.json")
TARGETS = ("cran", "cran-1837", "cisi", "cacm", "med")
SYSTEMS = {"bm25": {"ranker": "bm25"}, "klsa": {}}

Precisions = dict[str, float]
"""Average precision by the identifier of the query."""


def measuring(data: Path, home: Path) -> Callable[..., Precisions]:
    """Return a function of target, preset and parameters; an index is built once."""
    indexes = {}

    def measure(target: str, preset: str = "default", **parameters: object) -> Precisions:
        collection = open_collection(target, data=data)
        documents = target.removesuffix("-1837")
        if (documents, preset) not in indexes:
            name = f"{documents}-{preset}"
            indexes[documents, preset] = build(collection, name=name, home=home, preset=preset)
        judge = Judge(collection.judgements())
        queries = [query for query in collection.queries() if query.id in judge.query_ids]
        run = rank_best(indexes[documents, preset], queries, **parameters)
        return {id_: values["map"] for id_, values in judge.measure(run).queries.items()}

    return measure


def main(data: Path) -> None:
    """Measure all and write them down."""
    with tempfile.TemporaryDirectory() as home:
        measure = measuring(data, Path(home))
        found = {
            target: {
                system: {id_: round(value, 4) for id_, value in measure(target, **given).items()}
                for system, given in SYSTEMS.items()
            }
            for target in TARGETS
        }
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
