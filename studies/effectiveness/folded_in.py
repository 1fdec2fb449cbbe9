"""How well documents rank that are added after the build, beside a build of all documents.

The last fifth of each collection is added to an index of the others: BM25 knows all of them
exactly, the document kernel by the statistics of the first four fifths.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from studies.effectiveness.measuring import FOUR, Bench, Task, heading, percent, precisions_of, row

SHARE: Final = 0.8  # of the documents that are built


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every average precision."""
    found: dict[str, Any] = {}
    heading("MAP", "BM25", "built at once", "added later", "change", "BM25 of those")
    for name in FOUR:
        task = Task.of_target(name, data)
        kept = int(SHARE * len(task.documents))
        precisions = {
            "bm25": bench.precisions(task, {"ranker": "bm25"}),
            "whole": bench.precisions(task),
        }
        first = replace(task, documents=task.documents[:kept], corpus=f"{name}-first")
        index = bench.index(first, {})
        index.add(task.documents[kept:])
        precisions["added"] = precisions_of(index, task)
        precisions["added_bm25"] = precisions_of(index, task, ranker="bm25")
        means = {label: float(np.mean(values)) for label, values in precisions.items()}
        row(
            name,
            *(f"{means[label]:.4f}" for label in ("bm25", "whole", "added")),
            percent(means["added"] / means["whole"] - 1),
            f"{means['added_bm25']:.4f}",
        )
        found[name] = precisions
    return found
