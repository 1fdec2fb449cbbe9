"""What it costs to fold documents into an index, and what is found of their strong entries.

    python -m benchmarks.folding INDEX CORPUS.jsonl [--count 1000] [--sample 200] [--json FILE]

INDEX is the folder of an index whose D is cut, CORPUS one of `benchmarks.corpora` that is not in
it. `together` is the time for all documents in one call, `processor` that of the processors,
`alone` the median of documents folded in one by one behind them. For a sample the rows of K are
computed whole: `recall` is the share of the strongest entries that are found, `mass` that of
their sum; `build` is the recall of the index's own rows.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search import open_index
from klsa_search.collection import Document, open_collection
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.segment import DeltaSegment
from klsa_search.delta.statistics import BuildStatistics, open_statistics
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.sparse_expansion import unpack_rows

ALONE = 50  # documents that are folded in one by one


def seconds(
    epoch: BuildStatistics, documents: list[Document]
) -> tuple[dict[str, float], DeltaSegment]:
    DeltaBuilder(epoch).fold(documents[:1])  # compiles
    folding = DeltaBuilder(epoch)
    started, worked = time.perf_counter(), time.process_time()
    segment = folding.fold(documents)
    together, processor = time.perf_counter() - started, time.process_time() - worked
    alone = []
    for document in documents[:ALONE]:
        started = time.perf_counter()
        folding.fold([document])
        alone.append(time.perf_counter() - started)
    found = {
        "together_s": together,
        "processor_s": processor,
        "alone_ms": 1000 * float(np.median(alone)),
    }
    return found, segment


def quality(epoch: BuildStatistics, segment: DeltaSegment, sample: int) -> dict[str, float]:
    old = epoch.expansion.kernel()
    facts = segment.cards.view(np.float32)
    new = unpack_rows(
        segment.feature_starts, segment.features, facts[:, -3], len(epoch.expansion.mean)
    )
    kernel = DocumentKernel(
        sparse.csr_array(sparse.vstack((old.features, new), format="csr")),
        np.concatenate((old.scales, facts[:, -2])),
        old.mean,
    )
    size, gap = epoch.documents, epoch.first - epoch.documents
    rng = np.random.default_rng(0)
    recalls, masses, own = [], [], []
    for d in rng.choice(len(segment), min(sample, len(segment)), replace=False).tolist():
        positions = _positions(segment.rows[d])
        positions = np.where(positions < size, positions, positions - gap)
        recall, mass = _found(kernel.rows(np.array([size + d]))[0, : size + d], positions, segment)
        recalls.append(recall)
        masses.append(mass)
    for d in rng.choice(size, min(sample, size), replace=False).tolist():
        row = kernel.rows(np.array([d]))[0, :size]
        row[d] = 0
        own.append(_found(row, _positions(epoch.expansion.rows[d]), segment)[0])
    means = map(float, map(np.mean, (recalls, masses, own)))
    return dict(zip(("recall", "mass", "build"), means, strict=True))


def _positions(row: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    return (row[row > 0] >> np.uint32(8)).astype(np.int64)


def _found(
    row: npt.NDArray[np.floating], positions: npt.NDArray[np.int64], segment: DeltaSegment
) -> tuple[float, float]:
    """Recall and mass of what is found of a row; 1 of one that has no positive entries."""
    strongest = np.argsort(-row, kind="stable")[: segment.rows.shape[1]]
    strongest = strongest[row[strongest] > 0]
    if not len(strongest):
        return 1.0, 1.0
    recall = len(np.intersect1d(positions, strongest)) / len(strongest)
    return recall, float(row[positions].sum() / row[strongest].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--count", type=int, default=1000, help="documents to fold in")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    documents = list(islice(open_collection(options.corpus).documents(), options.count))
    with closing(open_index(options.index)) as index:
        epoch = open_statistics(index.path, index.settings, index.arrays.vocabulary)
        found, segment = seconds(epoch, documents)
        found |= quality(epoch, segment, options.sample)
    print(f"{len(documents):,} documents into {epoch.documents:,}")
    print("  ".join(f"{label} {value:.4g}" for label, value in found.items()))
    if options.json:
        record = {"documents": epoch.documents, "folded": len(documents), **found}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
