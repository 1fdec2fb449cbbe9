"""Can one tell from a query whether expansion will help it? Predictors, against what it did.

Prints Spearman's ρ of each predictor with the change of average precision of the default against
BM25, and what the best of both for every query would score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from klsa_search import Index
from studies.effectiveness.measuring import TARGETS, Bench, Task, heading, percent, row

SEEDS = 20
TOP = 10


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has predictors and changes query by query."""
    found: dict[str, Any] = {}
    for name in TARGETS:
        task = Task.of_target(name, data)
        base = np.array(bench.precisions(task, {"ranker": "bm25"}))
        best = np.array(bench.precisions(task, {}))
        found[name] = {
            "change": (best - base).tolist(),
            "predictors": _predictors(bench.index(task, {}), task),
            "default": float(best.mean() / base.mean() - 1),
            "oracle": float(np.maximum(best, base).mean() / base.mean() - 1),
            "never_hurt": float((best >= base).mean()),
        }
    heading("ρ with the change", *TARGETS)
    for predictor in found[TARGETS[0]]["predictors"]:
        values = (
            spearmanr(found[name]["predictors"][predictor], found[name]["change"]).statistic
            for name in TARGETS
        )
        row(predictor, *(f"{value:+.2f}".replace("-", "−") for value in values))
    row("default, gain", *(percent(found[name]["default"]) for name in TARGETS))
    row("better of the two, query by query", *(percent(found[n]["oracle"]) for n in TARGETS))
    return found


def _predictors(index: Index, task: Task) -> dict[str, list[float]]:
    space = index.snapshot.latent
    if space is None:
        raise SystemExit(f"{index.name} was built without a latent space")
    latent = space.documents
    judged = dict.fromkeys(judgement.query_id for judgement in task.judgements)
    texts = {query.id: query.text for query in task.queries}
    rows = [_of_query(index, latent, texts[query]) for query in judged]
    return {name: [values[name] for values in rows] for name in rows[0]}


def _of_query(index: Index, latent: npt.NDArray[Any], text: str) -> dict[str, float]:
    """k_q is the row of BM25; the seeds are its 20 best."""
    k_q = index.scores(text, ranker="bm25")
    seeds, weights = index.rank(text, SEEDS, ranker="bm25")
    weights = weights / weights[0]
    places = latent[seeds]
    cosines = places @ places.T
    together = (weights @ cosines @ weights - (weights**2).sum()) / (
        weights.sum() ** 2 - (weights**2).sum()
    )
    expanded, _ = index.rank(text, TOP, alpha=1.0)
    return {
        "words of the query": float(len(index.analyzer.terms(text))),
        "gap between first and second": float(1 - weights[1]),
        "gap between first and tenth": float(1 - weights[TOP - 1]),
        "share of k_q in the seeds": float(k_q[seeds].sum() / k_q.sum()),
        "share of documents matched": float((k_q > 0).mean()),
        "agreement of the seeds, latent": float(together),
        "seeds near the first, latent": float(cosines[0, 1:].mean()),
        "first ten shared with expansion": len(np.intersect1d(expanded, seeds[:TOP])) / TOP,
    }
