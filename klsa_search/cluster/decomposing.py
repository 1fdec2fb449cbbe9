"""Spectrum and sparse expansion of the document kernel, computed by shards.

The files are bit for bit those of `indexing.weighing`, whatever the number of shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.document_kernel import parts_of
from klsa_search.cluster.expansion import joined, packed, strongest_rows
from klsa_search.cluster.spectrum import solved
from klsa_search.cluster.work import StepResult, Work, map_array
from klsa_search.core.array_types import Eigenvalues
from klsa_search.core.config import Settings
from klsa_search.core.progress import EXPANSION, NEIGHBOURS, Progress
from klsa_search.indexing.sizes import keeps_spectrum, solved_dimensions
from klsa_search.lowrank.sparse_expansion import ENTRIES


@dataclass(frozen=True)
class Decomposed:
    """Files of the kernel, and the figures of its spectrum for the manifest.

    files  `eigenvalues`, `cut_*`, and `eigenvectors` if they are stored
    """

    files: StepResult
    eigenvalues: Eigenvalues
    residual: float
    gap: float
    trace: float


def decomposed(
    work: Work,
    shards: Sequence[StepResult],
    *,
    settings: Settings,
    documents: Sequence[int],
    columns: int,
    term_weights: npt.NDArray[np.float64],
    progress: Progress,
) -> Decomposed:
    """Decompose the kernel of the documents of all shards, and truncate its rows.

    shards        features Φ in document order: `features_starts` int64, `features_columns` int32
                  sorted in each row, `features_weights` float64; all shards but the last have a
                  multiple of 8,192 documents
    documents     number of documents of each shard
    columns       number of features F: V terms, then pairs
    term_weights  (V,) w(t)^p
    Memory of a worker: that of one shard, or of one of as many ranges of features. Cost: that of
    one machine, plus reading the features of all shards once by each, and each block of columns
    by each range.
    """
    N = sum(documents)
    parts, whole = parts_of(
        work,
        shards,
        documents,
        columns=columns,
        centred=settings.centred,
        normalised=settings.normalised,
        ranges=len(shards),
    )
    edges = map_array(whole, "edges").tolist()
    spectrum = solved(
        work,
        parts,
        whole,
        features=columns,
        edges=edges,
        dimensions=solved_dimensions(N, settings),
        seed=settings.seed,
        progress=progress,
    )
    progress(NEIGHBOURS, 0, None)
    entries = max(ENTRIES, settings.neighbours)
    strongest = strongest_rows(work, parts, len(edges) - 1, features=columns, entries=entries + 1)
    progress(EXPANSION, 0, None)
    rows, terms = packed(
        work,
        parts,
        whole,
        vectors=spectrum.pieces,
        values=spectrum.eigenvalues[: settings.latent_dimensions],
        strongest=strongest,
        entries=entries,
        term_weights=term_weights,
        edges=edges,
    )
    files = work.one(
        joined,
        rows=rows,
        terms=terms,
        eigenvalues=spectrum.eigenvalues,
        vectors=spectrum.pieces if keeps_spectrum(N, settings) else None,
    )
    work.empty(*rows, *terms, *strongest, *spectrum.pieces, *(part["kernel"] for part in parts))
    return Decomposed(files, spectrum.eigenvalues, spectrum.residual, spectrum.gap, spectrum.trace)
