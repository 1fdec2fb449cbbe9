"""What the block solver costs, and how far it is from the exact eigenvectors.

    python -m benchmarks.spectrum CORPUS.jsonl [--dimensions 50] [--exact] [--json FILE]

CORPUS is one of `benchmarks.corpora`. Prints seconds, products with K, the residual, and peak
memory. With --exact the same is done by Lanczos in float64, which takes several times as long, and
the two are compared: the cosine of the largest angle between the spaces, and the share of each
document's 20 nearest by the latent coordinates that both agree on, for 300 documents.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from klsa_search.analysis import Analyzer
from klsa_search.core.config import Settings
from klsa_search.kernels import bm25
from klsa_search.kernels.counts import CountsBuilder
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.eigensolver import Spectrum, decompose

NEAREST = 20
SAMPLE = 300


def default_features(corpus: Path) -> sparse.csr_array:
    """The features an index of the default settings has."""
    settings = Settings()
    analyzer = Analyzer(settings)
    counts = CountsBuilder(weights=settings.searched_fields.weights, common=analyzer.common())
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            counts.add(analyzer.terms(record["title"]), analyzer.terms(record["text"]))
    return bm25.document_features(
        counts.finish().content,
        k1=settings.kernel_k1,
        b=settings.b,
        idf_power=settings.idf_power,
        pairs=settings.pairs,
    )


def default_kernel(features: sparse.csr_array, dtype: type[np.floating[Any]]) -> DocumentKernel:
    """The kernel an index of the default settings has, in float32 or float64."""
    kernel = DocumentKernel.of(features, centred=True, normalised=True)
    return DocumentKernel(kernel.features.astype(dtype, copy=False), kernel.scales, kernel.mean)


def measured(kernel: DocumentKernel, dimensions: int) -> tuple[Spectrum, dict[str, float]]:
    products = 0

    def count(phase: str, done: int, total: int | None) -> None:
        nonlocal products
        products = done

    started = time.perf_counter()
    spectrum = decompose(kernel, dimensions, progress=count)
    return spectrum, {
        "seconds": round(time.perf_counter() - started, 1),
        "products": products,
        "residual": spectrum.residual,
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def agreement(one: Spectrum, other: Spectrum) -> dict[str, float]:
    cosines = np.linalg.svd(one.eigenvectors.T @ other.eigenvectors, compute_uv=False)
    chosen = np.random.default_rng(0).choice(len(one.eigenvectors), SAMPLE, replace=False)
    both = zip(nearest(one, chosen), nearest(other, chosen), strict=True)
    shared = [len(set(left) & set(right)) / NEAREST for left, right in both]
    return {"smallest_cosine": float(cosines.min()), "nearest_shared": float(np.mean(shared))}


def nearest(spectrum: Spectrum, chosen: np.ndarray) -> list[list[int]]:
    coordinates = (spectrum.eigenvectors * np.sqrt(spectrum.eigenvalues)).astype(np.float32)
    lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
    coordinates /= np.maximum(lengths, np.finfo(np.float32).tiny)
    return [
        np.argsort(-(coordinates @ coordinates[d]), kind="stable")[:NEAREST].tolist()
        for d in chosen
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--dimensions", type=int, default=50)
    parser.add_argument("--exact", action="store_true", help="compare with Lanczos in float64")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    features = default_features(options.corpus)
    print(f"{features.shape[0]:,} documents, {features.shape[1]:,} features, {features.nnz:,} held")
    spectrum, figures = measured(default_kernel(features, np.float32), options.dimensions)
    found: dict[str, dict[str, float]] = {"blocks": figures}
    if options.exact:
        exact, figures = measured(default_kernel(features, np.float64), options.dimensions)
        found |= {"exact": figures, "agreement": agreement(exact, spectrum)}
    for name, figures in found.items():
        print(f"{name:10}", "  ".join(f"{label} {value:.7g}" for label, value in figures.items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
