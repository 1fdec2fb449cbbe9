"""Nearest neighbours: the largest entries of each row of K, without comparing all pairs.

The largest features of a document are a query against truncated postings, which have only the
largest documents of each feature. The documents with the largest partial sums are candidates, for
which K is computed exactly; the largest entries are kept. A document can be missed if it is not
among the largest of any shared feature; entries kept are exact.

Documents can be divided into parts, of which that of the rows and one other are in memory at a
time: all parts add their postings to the candidates, then each computes K for its own. The division
does not change the result, nor does the number of threads.

Cost per document: at most `KnnParams.postings` additions and `KnnParams.candidates` sparse inner
products, independent of N.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import Numbers, csr_arrays, narrow_indptr, starts_of
from klsa_search.core.parallel import processors
from klsa_search.core.progress import NEIGHBOURS, Progress
from klsa_search.kernels.document_kernel import DocumentKernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scipy import sparse


@dataclass(frozen=True)
class KnnParams:
    """Limits of the search for neighbours, which trade time for recall.

    documents_per_feature  documents in the truncated postings of a feature, its largest
    features               features of a document in its query, its largest
    postings               postings added for a document
    candidates             documents whose K is computed
    """

    documents_per_feature: int = 2000
    features: int = 80
    postings: int = 80_000
    candidates: int = 200


LIMITS: Final = KnnParams()


class KnnPart(NamedTuple):
    """Documents among which neighbours are found: all of a collection, or some; in float32.

    first                         doc id of the first document
    starts, columns, weights      features of the documents, as in CSR
    scales, towards_mean          (n,) S and SΦμ; mean_square: (1,) ‖μ‖²
    posting_starts, posting_documents, posting_values
                                  truncated postings, with documents numbered from 0 in the part
    """

    first: int
    starts: Numbers
    columns: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    towards_mean: npt.NDArray[np.float32]
    mean_square: npt.NDArray[np.float32]
    posting_starts: Numbers
    posting_documents: npt.NDArray[np.int32]
    posting_values: npt.NDArray[np.float32]

    @classmethod
    def of(cls, kernel: DocumentKernel, params: KnnParams = LIMITS, parts: int = 1) -> KnnPart:
        """Return a part with the documents of a kernel, the first of all.

        parts  number of parts, which share the limit of documents of a feature
        """
        limit = -(-params.documents_per_feature // parts)
        scales, features = posting_scales(kernel), kernel.features
        starts, columns, weights = csr_arrays(features)
        postings = truncate_postings(features, scales, limit, keep_single=parts > 1)
        return cls(
            0,
            starts,
            columns,
            weights.astype(np.float32, copy=False),
            kernel.scales.astype(np.float32),
            kernel.towards_mean.astype(np.float32),
            np.array([kernel.mean_square], np.float32),
            *postings,
        )


_Step = Callable[[_native.KnnPart, int, int], int]

_CHUNK = 256  # documents per task

_CHUNKS = 16  # tasks of a thread between two readings of the parts, at least

_READ = 16
"""Documents of other parts that are read for a row, at most: 26 µs of about 400 µs for a row."""


def nearest_rows(
    kernel: DocumentKernel,
    entries: int,
    *,
    threads: int | None = None,
    params: KnnParams = LIMITS,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """Return the `entries` largest of each row of K: (N, N) sparse float32, none below 0.

    threads   by default the number of processors
    progress  called as "neighbours" with the number of documents done and the total
    Memory: 16 bytes per feature of a document, half of them temporarily, 8 per entry, and
    4 F per thread.
    """
    part = KnnPart.of(kernel, params)
    return nearest_rows_in_parts(
        [lambda: part], [len(kernel)], 0, entries, threads=threads, params=params, progress=progress
    )


def nearest_rows_in_parts(
    parts: Sequence[Callable[[], KnnPart]],
    sizes: Sequence[int],
    number: int,
    entries: int,
    *,
    threads: int | None = None,
    params: KnnParams = LIMITS,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """Return the `entries` largest of each row of K of one part: (n, N) sparse float32.

    parts   return the parts, of N documents together; called whenever one is needed
    sizes   their numbers of documents
    number  number of the part of the rows, which has n documents
    See `nearest_rows` for the other parameters. Memory: that of the part, of one other, and 8 bytes
    per candidate of N / 16 documents.
    """
    postings = reduce(np.add, (np.diff(part().posting_starts) for part in parts))
    row_part = _native_part(parts[number]())
    searcher = _native.KnnSearcher(
        row_part,
        np.where(postings > 1, postings, 0),  # a single document has no neighbour
        features=params.features,
        postings=params.postings,
    )
    n, N = sizes[number], sum(sizes)
    columns, values = np.zeros((n, entries), np.int32), np.zeros((n, entries), np.float32)
    threads = threads or processors()
    block = _CHUNK * max(
        _CHUNKS * threads, (N - n) // (_READ * _CHUNK)
    )  # rows between two readings
    keys = np.empty((min(block, n), params.candidates), np.int64)

    def find(part: _native.KnnPart, first: int, rows: slice) -> None:
        searcher.find_candidates(part, rows.start, keys[rows.start - first : rows.stop - first])

    def score(part: _native.KnnPart, first: int, rows: slice) -> None:
        some = keys[rows.start - first : rows.stop - first]
        searcher.add_entries(part, rows.start, some, columns[rows], values[rows])

    def search_part(step: _Step, i: int, first: int) -> Iterator[int]:
        part = row_part if i == number else _native_part(parts[i]())
        starts = range(first, min(first + block, n), _CHUNK)
        chunks = [slice(start, min(start + _CHUNK, n)) for start in starts]
        for rows, _ in zip(chunks, workers.map(partial(step, part, first), chunks), strict=True):
            yield rows.stop - rows.start

    done = 0
    with ThreadPoolExecutor(threads) as workers:
        for first in range(0, n, block):
            keys[:] = 0
            for step, i in product((find, score), range(len(parts))):
                for rows in search_part(step, i, first):
                    done += rows
                    if progress is not None:
                        progress(NEIGHBOURS, done // (2 * len(parts)), n)
    from scipy import sparse

    sizes_of_rows = np.count_nonzero(values, axis=1).astype(np.int32)
    total = _native.compact_rows(columns, values, sizes_of_rows)
    starts = narrow_indptr(starts_of(sizes_of_rows))
    matrix = sparse.csr_array(  # in the memory of the rows
        (values.ravel()[:total], columns.ravel()[:total], starts), shape=(n, N)
    )
    matrix.has_sorted_indices = True
    return matrix


def _native_part(part: KnnPart) -> _native.KnnPart:
    """Return a part as compiled loops take it. Cost: reading it."""
    return _native.KnnPart(*part[:6], float(part.mean_square[0]), *part[7:])


def posting_scales(kernel: DocumentKernel) -> npt.NDArray[np.float32]:
    """Return K(d,d)^-¼: (N,), 0 for the mean document."""
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(len(kernel)), where=lengths > 0)
    return np.sqrt(inverse).astype(np.float32)


TruncatedPostings = tuple[Numbers, npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Start of the postings of each feature, their documents in ascending order, and their values."""


def truncate_postings(
    features: sparse.csr_array,
    scales: npt.NDArray[np.float32],
    limit: int,
    *,
    keep_single: bool = False,
) -> TruncatedPostings:
    """Return the `limit` largest postings of each feature, times the scales of the documents.

    keep_single  whether a feature of a single document has postings
    Cost O(nnz); memory 8 bytes per entry temporarily, and 8 bytes per posting kept.
    """
    by_feature = features.tocsc()
    sizes = np.diff(by_feature.indptr)
    kept = np.where(sizes > (0 if keep_single else 1), np.minimum(sizes, limit), 0)
    starts = starts_of(kept)
    documents = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    _native.truncate_postings(*csr_arrays(by_feature), scales, starts, documents, values)
    return starts, documents, values
