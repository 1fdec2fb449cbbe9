"""Why z = 1 is not the best point on cran under trec_eval: the documents graded -1.

    python -m studies.figure_protocols [--data DIR]

Preset `paper` on cran, gains in MAP over BM25 where grades 1 to 4 are relevant: as they are, and
with the documents graded -1 left out of the rankings; then z = 5 against z = 1 by paired
randomisation.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search import Index, build
from klsa_search.collection import Collection, open_collection

SEEDS = (1, 5, 10, 20)
ALPHAS = (0.7, 0.8, 0.9)


def average_precision(scores: np.ndarray, relevant: list[int], left_out: list[int]) -> float:
    order = np.argsort(-scores, kind="stable")
    order = order[~np.isin(order, left_out)]
    places = np.flatnonzero(np.isin(order, relevant)) + 1
    return float((np.arange(1, len(places) + 1) / places).sum() / len(relevant))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    collection = open_collection("cran", data=options.data)
    with tempfile.TemporaryDirectory() as home:
        index = build(collection, name="cran", home=home, preset="paper")
        report(index, collection)


def report(index: Index, collection: Collection) -> None:
    place = {identifier: position for position, identifier in enumerate(index.ids())}
    relevant: dict[str, list[int]] = {}
    refused: dict[str, list[int]] = {}
    for judgement in collection.judgements():
        grades = relevant if judgement.grade > 0 else refused
        grades.setdefault(judgement.query_id, []).append(place[judgement.document_id])
    queries = [query for query in collection.queries() if query.id in relevant]

    def precisions(left_out: Callable[[str], list[int]], **parameters: Any) -> np.ndarray:
        return np.array(
            [
                average_precision(
                    index.scores(query.text, **parameters), relevant[query.id], left_out(query.id)
                )
                for query in queries
            ]
        )

    first = [index.rank(query.text, 1, ranker="bm25")[0][0] for query in queries]
    on_top = sum(top in refused[query.id] for top, query in zip(first, queries, strict=True))
    print(f"BM25's first document is graded -1 for {on_top} of {len(queries)} queries")
    for title, left_out in (
        ("as they are", lambda _: []),
        ("without the documents graded -1", lambda query: refused[query]),
    ):
        base = precisions(left_out, alpha=0.0).mean()
        print(f"\n{title}: BM25 {base:.4f}\n     " + "".join(f"  a={alpha}" for alpha in ALPHAS))
        for z in SEEDS:
            gains = [precisions(left_out, alpha=a, z=z).mean() / base - 1 for a in ALPHAS]
            print(f"z={z:<3}" + "".join(f"{100 * gain:+7.1f}" for gain in gains))
    one, five = (precisions(lambda _: [], alpha=0.9, z=z) for z in (1, 5))
    difference = five - one
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (10_000, len(difference)))
    chance = np.mean(np.abs(signs @ difference) >= abs(difference.sum()))
    print(f"\nz = 5 against z = 1 at a = .9: {difference.mean():+.4f}, p = {chance:.2f}")


if __name__ == "__main__":
    main()
