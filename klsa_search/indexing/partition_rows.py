"""Rows of D in partitions: the neighbours of a document are found in all of them.

Each partition first writes its features to a work folder (`write_features`), then its rows from the
features of all (`write_rows`). Rows are those of an index with one partition, except that features
have 8 bits and that ties among postings are resolved differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.progress import EXPANSION, Progress
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import (
    DocumentFeatures,
    KnnParams,
    KnnPart,
    nearest_rows_in_parts,
)
from klsa_search.lowrank.sparse_expansion import pack_partition_table, remote_rows_arrays
from klsa_search.storage.arrays import write_arrays

_PARAMS = KnnParams()


def write_features(
    folder: Path, kernel: DocumentKernel, ordinals: npt.NDArray[np.int64], partitions: int
) -> None:
    """Write what other partitions need to find neighbours among the documents of one.

    ordinals    (n,) of the documents
    partitions  their number
    """
    part = KnnPart.of(kernel, _PARAMS, parts=partitions)
    starts, columns, weights = part.features.features
    scales, towards_mean, mean_square = part.features.centring
    postings_starts, postings_documents, postings_values = part.postings
    arrays: dict[str, npt.NDArray[Any]] = {
        "starts": starts,
        "columns": columns,
        "weights": weights,
        "scales": scales,
        "towards_mean": towards_mean,
        "mean_square": np.array([mean_square]),
        "postings_starts": postings_starts,
        "postings_documents": postings_documents,
        "postings_values": postings_values,
        "ordinals": ordinals,
    }
    write_arrays(folder, arrays)


def write_rows(
    generation: Path,
    folders: Sequence[Path],
    number: int,
    diagonals: npt.NDArray[np.float32],
    width: int,
    report: Progress,
) -> None:
    """Write the rows of D of a partition.

    folders    of the features of all partitions
    diagonals  (n,) K(d, d) of the documents of this one
    width      entries of a row
    Cost: that of the rows of an index with one partition, for the documents of this one. The
    features of all partitions are mapped into memory.
    """
    parts, first = [], 0
    for folder in folders:
        parts.append(_open_part(folder, first))
        first += len(parts[-1].features.centring[0])
    rows = nearest_rows_in_parts(parts, number, width + 1, progress=report)
    report(EXPANSION, 0, None)
    ordinals = np.concatenate([_mapped(folder, "ordinals") for folder in folders])
    table, steps, remote_rows = pack_partition_table(
        rows, width, parts[number].features.first, ordinals
    )
    scales = np.column_stack((steps, diagonals)).astype(np.float32)
    arrays = {"cut_rows": table, "cut_scales": scales, **remote_rows_arrays(remote_rows)}
    write_arrays(generation, arrays)


def _open_part(folder: Path, first: int) -> KnnPart:
    """Return the part of a partition, whose documents are numbered from `first` on."""
    array = partial(_mapped, folder)
    features = DocumentFeatures(
        first,
        (array("starts"), array("columns"), array("weights")),
        (array("scales"), array("towards_mean"), array("mean_square")[0]),
    )
    postings = array("postings_starts"), array("postings_documents"), array("postings_values")
    return KnnPart(features, postings)


def _mapped(folder: Path, name: str) -> npt.NDArray[Any]:
    mapped: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
    return mapped
