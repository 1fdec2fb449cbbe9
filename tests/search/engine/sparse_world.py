"""A small collection with a sparse D in memory, without files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from klsa_search.core.config import Settings
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.postings import Segments
from klsa_search.kernels.query_kernel import QueryKernel, TermWeighting
from klsa_search.lowrank.eigensolver import decompose
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.sparse_expansion import ENTRIES, SegmentedExpansion, SparseExpansion
from klsa_search.search.engine.snapshot import Snapshot
from tests.support.worlds import bm25_features, counts_of, idf_of_counts, query_kernel

WEIGHTING = TermWeighting(burstiness=2.0, common=np.array([1]), common_weight=0.5)
"""Terms that come in bursts weigh more, and the second of the vocabulary is common."""

WAYS = (
    {},
    {"unit_length": False},
    {"sharpness": 1.5, "lexical_sharpness": 2.5},
    {"coverage": 0.0},
    {"latent": 0.0},
    {"z": 2, "alpha": 1.0},
)
"""Settings of the default ranking that take each of its ways."""


def cut_world(
    documents, *, neighbours=5, dimensions=6, block_bits=None, around=lambda array: array
):
    """Snapshot of documents whose terms are separated by blanks.

    around  applied to every array that compiled code reads
    """
    counts = counts_of(*documents)
    weighting = replace(WEIGHTING, common=WEIGHTING.common[: max(len(counts.vocabulary) - 1, 0)])
    plain = query_kernel(counts, block_bits=block_bits, weighting=weighting)
    idf = idf_of_counts(counts)
    kernel = DocumentKernel.of(
        bm25_features(counts, k1=3.0, b=0.75, idf_power=1.0),
        centred=True,
        normalised=True,
    )
    spectrum = decompose(kernel, dimensions, seed=0)
    latent = LatentSpace.of(kernel, spectrum, dimensions, idf)
    strongest = sparse.csr_array(np.maximum(kernel.explicit(), 0).astype(np.float32))
    sparse_expansion = SparseExpansion.of(kernel, strongest, latent, max(ENTRIES, neighbours))
    (part,) = plain.postings.parts
    postings = Segments.single(_each(part.postings, around))
    live = plain.counts
    live = replace(live, frequencies=around(live.frequencies), occurrences=around(live.occurrences))
    held = QueryKernel.of(postings, live, plain.weighting)
    return Snapshot(
        generation=Path(),
        settings=Settings(dimensions=dimensions, neighbours=neighbours),
        vocabulary=counts.vocabulary,
        query_kernel=held,
        common=weighting.common,
        lengths=counts.lengths.astype(np.int32),
        eigenvalues=spectrum.eigenvalues,
        eigenvectors=np.zeros((len(documents), 0), np.float32),
        expansion=None,
        sparse_expansion=SegmentedExpansion([_each(sparse_expansion, around)]),
        has_spectrum=False,
        small=False,
        forward=None,  # the default ranking reads none
    )


def _each(arrays, around):
    """The same dataclass with `around` applied to its arrays."""
    fields = {
        name: around(value) if isinstance(value, np.ndarray) else value
        for name, value in vars(arrays).items()
    }
    return type(arrays)(**fields)
