"""Time of the latent semantic and Gram-Schmidt kernels beside the obvious ways to do the same.

    python -m benchmarks.estimators [--data DIR] [--components 300] [--rounds 3] [--rows N]
                                    [--patience 25] [--json FILE]

The 12,902 ModApte stories of Reuters-21578, log-tf·idf, unit length; `--rows` takes the first N of
them. The three fast ways run in turn, `--rounds` times after a warming round on 600 rows; medians
are reported. Then dense `eigh` of the Gram matrix and scikit-learn's KernelPCA run once each, in
processes of their own that are stopped after `--patience` times the latent semantic kernel: what
is stopped took longer. `kept` is the share of the trace of K that the components hold, of 300
components the more the better.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.decomposition import KernelPCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from klsa_search.analysis import Analyzer
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.estimators import GramSchmidtKernel, LatentSemanticKernel, TfidfFeatures
from studies.datasets import reuters_folder
from studies.effectiveness.reuters import labelled


def features(folder: Path, rows: int | None) -> sparse.csr_array:
    """(N, V) features of the stories, titles and texts, stop words out, stemmed."""
    texts = [f"{s.document.title}\n{s.document.text}" for s in labelled(folder)][:rows]
    words = Analyzer(AnalysisSettings(stop_words="long")).terms
    return make_pipeline(CountVectorizer(analyzer=words), TfidfFeatures()).fit_transform(texts)


def latent_semantic(X: sparse.csr_array, components: int) -> float:
    return float(LatentSemanticKernel(components).fit(X).eigenvalues_.sum())


def gram_schmidt(X: sparse.csr_array, components: int) -> float:
    features = GramSchmidtKernel(components).fit(X).factor_.features
    return float(np.einsum("nt,nt->", features, features))


def truncated_svd(X: sparse.csr_array, components: int) -> float:
    return float((TruncatedSVD(components, random_state=0).fit(X).singular_values_ ** 2).sum())


def dense_eigh(X: sparse.csr_array, components: int) -> float:
    K, N = (X @ X.T).toarray(), X.shape[0]
    return float(linalg.eigh(K, subset_by_index=[N - components, N - 1])[0].sum())


def kernel_pca(X: sparse.csr_array, components: int) -> float:
    # It centres, so what it keeps cannot be compared.
    KernelPCA(components, kernel="linear").fit(X)
    return float("nan")


FAST = {f.__name__: f for f in (latent_semantic, gram_schmidt, truncated_svd)}
SLOW = {f.__name__: f for f in (dense_eigh, kernel_pca)}


def timed(
    run: Callable[[sparse.csr_array, int], float], X: sparse.csr_array, components: int
) -> tuple[float, float]:
    """Seconds, and the trace that was kept."""
    begun = time.perf_counter()
    kept = run(X, components)
    return time.perf_counter() - begun, kept


def _report(name: str, X: sparse.csr_array, components: int, queue: Any) -> None:
    queue.put(timed(SLOW[name], X, components))


def timed_within(
    name: str, X: sparse.csr_array, components: int, limit: float
) -> tuple[float, float] | None:
    """Seconds and trace kept of a slow way in a process of its own; None if it was stopped."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_report, args=(name, X, components, queue))
    process.start()
    process.join(limit + 5)  # which a new process takes to import what it needs
    if process.is_alive():
        process.kill()
        process.join(600)
        return None
    found: tuple[float, float] = queue.get()
    return found


def peak_memory(X: sparse.csr_array, components: int) -> int:
    """Bytes that fitting the Gram-Schmidt kernel takes at most, above its input."""
    tracemalloc.start()
    gram_schmidt(X, components)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--components", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--patience", type=float, default=25)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    X, components = features(reuters_folder(options.data), options.rows), options.components
    trace = float((X * X).sum())
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz} entries, {components} components")
    for run in FAST.values():
        run(X[:600], min(components, 100))
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in FAST}
    for _ in range(options.rounds):
        for name, run in FAST.items():
            runs[name].append(timed(run, X, components))
    report: dict[str, Any] = {
        name: {"seconds": statistics.median(s for s, _ in of_way), "kept": of_way[0][1] / trace}
        for name, of_way in runs.items()
    }
    own = report["latent_semantic"]["seconds"]
    for name in SLOW:
        limit = options.patience * own
        found = timed_within(name, X, components, limit)
        seconds, kept = found or (limit, float("nan"))
        report[name] = {"seconds": seconds, "kept": kept / trace, "stopped": found is None}
    print(f"{'':16}{'s':>8}{'times':>9}{'kept':>8}")
    for name, row in report.items():
        more = ">" if row.get("stopped") else ""
        share = "-" if np.isnan(row["kept"]) else f"{row['kept']:.4f}"
        print(
            f"{name:16}{more + format(row['seconds'], '.2f'):>8}"
            f"{more + format(row['seconds'] / own, '.1f'):>9}{share:>8}"
        )
    report["gram_schmidt"]["peak_bytes"] = peak_memory(X, components)
    print(f"gram_schmidt: {report['gram_schmidt']['peak_bytes'] / 2**20:.0f} MiB at most")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
