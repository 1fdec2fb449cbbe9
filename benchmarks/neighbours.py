"""What the search for the strong entries of K costs, and what it finds of them.

    python -m benchmarks.neighbours CORPUS.jsonl [--sample 300] [--all] [--json FILE]
        [--documents_per_feature 2000] [--features 80] [--postings 80000]
        [--candidates 200]

CORPUS is one of `benchmarks.corpora`. For a sample of documents the rows of K are computed whole;
`mass` is the share of the sum of their 65 strongest entries that the search finds, `recall` of the
entries themselves. Seconds are those of 20,000 documents scaled to all, or with
--all of all; what is done once, cutting the postings, is in `fixed`.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from benchmarks.spectrum import default_features
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import KnnParams, nearest_rows
from klsa_search.kernels.neighbour_graph import largest_of_rows

ENTRIES = 65  # the document itself, and those that are kept
TIMED = 20_000
ROWS = 20  # of K in memory


def quality(kernel: DocumentKernel, sample: int, params: KnnParams) -> dict[str, float]:
    size = len(kernel)
    chosen = np.sort(np.random.default_rng(0).choice(size, min(sample, size), replace=False))
    found = nearest_rows(kernel, ENTRIES, documents=chosen, params=params)
    mass, shared = 0.0, []
    for first in range(0, len(chosen), ROWS):
        some = chosen[first : first + ROWS]
        exact = largest_of_rows(kernel.rows(some), ENTRIES)
        mass += exact.sum()
        for d, row in zip(some.tolist(), exact, strict=True):
            if row.nnz:
                shared.append(len(np.intersect1d(row.indices, found[[d]].indices)) / row.nnz)
    return {"mass": float(found.sum() / mass), "recall": float(np.mean(shared))}


def seconds(kernel: DocumentKernel, params: KnnParams, whole: bool) -> dict[str, float]:
    size = len(kernel)
    nearest_rows(kernel, ENTRIES, documents=np.arange(1), params=params)  # compiles
    started = time.perf_counter()
    nearest_rows(kernel, ENTRIES, documents=np.arange(1), params=params)
    fixed = time.perf_counter() - started
    step = 1 if whole else max(1, size // TIMED)
    timed = np.arange(0, size, step)
    started = time.perf_counter()
    nearest_rows(kernel, ENTRIES, documents=timed, params=params)
    rest = time.perf_counter() - started - fixed
    return {
        "fixed": round(fixed, 1),
        "seconds": round(fixed + rest * size / len(timed), 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--all", action="store_true", help="time all documents")
    parser.add_argument("--json", type=Path)
    for field in fields(KnnParams):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    options = parser.parse_args()
    params = KnnParams(**{field.name: getattr(options, field.name) for field in fields(KnnParams)})
    features = default_features(options.corpus)
    kernel = DocumentKernel.of(features, centred=True, normalised=True)
    found = seconds(kernel, params, options.all) | quality(kernel, options.sample, params)
    print(f"{len(kernel):,} documents, {params}")
    print("  ".join(f"{label} {value:.4g}" for label, value in found.items()))
    if options.json:
        record = {"documents": len(kernel), "params": asdict(params), **found}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
