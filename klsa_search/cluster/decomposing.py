"""From the features of each shard to the arrays that a build makes of the document kernel.

File for file what `indexing.weighing` writes, to the bit, however the documents are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.document_kernel import parts_of
from klsa_search.cluster.expansion import joined, packed, strongest_rows
from klsa_search.cluster.spectrum import solved
from klsa_search.cluster.work import StepResult, Work, mapped
from klsa_search.core.array_types import Eigenvalues
from klsa_search.core.config import Settings
from klsa_search.core.progress import EXPANSION, NEIGHBOURS, Progress
from klsa_search.indexing.sizes import keeps_spectrum, solved_dimensions
from klsa_search.lowrank.sparse_expansion import ENTRIES


@dataclass(frozen=True)
class Decomposed:
    """The files of a generation that the kernel gives, and what the manifest says of its spectrum.

    files  `eigenvalues`, `cut_*`, and `eigenvectors` where they are kept
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
    """Decompose the kernel of the documents of all shards, and cut its rows.

    shards        in document order; all but the last hold a multiple of 8,192 documents. Each has
                  Φ: `features_starts` int64, `features_columns` int32 in order within each row,
                  `features_weights` float64
    documents     of each shard
    columns       F: V terms, then pairs
    term_weights  (V,) w(t)^p
    A worker holds what is of one shard, or of one of as many ranges of features. The work is that
    of one machine; in addition each shard reads the features of all others once, and each range of
    features every block of columns.
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
    edges = mapped(whole, "edges").tolist()
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
