"""Weigh: from counts to everything a query reads, written to a generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.config import Settings
from klsa_search.expansion import LatentSpace, expansion_matrix
from klsa_search.expansion.cut import ENTRIES, CutExpansion, cut_arrays
from klsa_search.features import TermCounts, bm25, tfidf
from klsa_search.indexing.layout import layout
from klsa_search.kernel import DocumentKernel, Postings, nearest_rows, neighbour_graph
from klsa_search.kernel.bounds import Bounds, bounds_arrays
from klsa_search.progress import EXPANSION, POSTINGS, Progress
from klsa_search.spectrum import Spectrum, decompose
from klsa_search.store.arrays import write_arrays, write_vocabulary
from klsa_search.store.sparse import sparse_arrays


def weigh(
    counts: TermCounts, generation: Path, settings: Settings, report: Progress
) -> dict[str, Spectrum]:
    """Write postings, spectra, and D in its layout; returns the spectra by name.

    Cost and memory: see `build` and `estimate`.
    """
    report(POSTINGS, 0, None)
    write_vocabulary(generation, counts.vocabulary.terms)
    idf = bm25.inverse_document_frequencies(counts)
    write_arrays(generation, _postings(counts, settings) | {"idf": idf.astype(np.float32)})
    kernel = DocumentKernel.of(
        bm25.document_features(
            counts,
            k1=settings.kernel_k1,
            b=settings.b,
            idf_power=settings.idf_power,
            pairs=settings.pairs,
        ),
        centred=settings.centred,
        normalised=settings.normalised,
    )
    if layout(len(kernel), settings) == "cut":
        return {"bm25": _write_cut(generation, kernel, idf, settings, report)}
    spectrum = decompose(kernel, settings.dimensions, seed=settings.seed, progress=report)
    lsi = decompose(
        DocumentKernel.of(tfidf.document_features(counts)),
        settings.dimensions,
        seed=settings.seed,
        progress=report,
    )
    arrays: dict[str, npt.NDArray[Any]] = {
        "postings_tfidf": Postings.of(tfidf.query_impacts(counts)).weights,
        **sparse_arrays("features", kernel.features),
        "features_scales": kernel.scales.astype(np.float32),
        "features_mean": kernel.mean.astype(np.float32),
        "eigenvectors": spectrum.eigenvectors.astype(np.float32),
        "eigenvalues": spectrum.eigenvalues,
        "lsi_eigenvectors": lsi.eigenvectors.astype(np.float32),
        "lsi_eigenvalues": lsi.eigenvalues,
    }
    report(EXPANSION, 0, None)
    if layout(len(kernel), settings) == "whole":
        arrays["expansion"] = expansion_matrix(
            kernel, spectrum, settings.spectral, settings.gamma, settings.head
        )
    if settings.coverage:
        arrays |= sparse_arrays("neighbours", neighbour_graph(kernel, settings.neighbours))
    if settings.latent:
        latent = LatentSpace.of(
            kernel, spectrum, settings.latent_dimensions, idf**settings.idf_power
        )
        arrays |= {"latent_documents": latent.documents, "latent_terms": latent.terms}
    write_arrays(generation, arrays)
    return {"bm25": spectrum, "lsi": lsi}


def _postings(counts: TermCounts, settings: Settings) -> dict[str, npt.NDArray[Any]]:
    weights, step = bm25.on_grid(bm25.query_impacts(counts, k1=settings.k1, b=settings.b))
    impacts = Postings.of(weights)
    return {
        "postings_starts": impacts.starts,
        "postings_documents": impacts.documents,
        "postings_bm25": impacts.weights,
        **bounds_arrays(Bounds.of(impacts, step)),
    }


def _write_cut(
    generation: Path,
    kernel: DocumentKernel,
    idf: npt.NDArray[np.float64],
    settings: Settings,
    report: Progress,
) -> Spectrum:
    """Write what the default ranking reads, and no more."""
    dimensions = min(settings.latent_dimensions, settings.dimensions)
    spectrum = decompose(kernel, dimensions, seed=settings.seed, progress=report)
    latent = LatentSpace.of(kernel, spectrum, dimensions, idf**settings.idf_power)
    entries = max(ENTRIES, settings.neighbours)
    strongest = nearest_rows(kernel, entries + 1, progress=report)
    report(EXPANSION, 0, None)
    cut = CutExpansion.of(kernel, strongest, latent, entries)
    write_arrays(generation, {"eigenvalues": spectrum.eigenvalues, **cut_arrays(cut)})
    return spectrum
