"""Placing: where a text that is not in the index lies in its latent space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klsa_search.arrays import Matrix
from klsa_search.features import bm25
from klsa_search.features.counts import without_columns
from klsa_search.mining.asking import latent_space
from klsa_search.search.index import Index
from klsa_search.search.query import counts_of_texts


def place_texts(index: Index, texts: Sequence[str]) -> Matrix:
    """Coordinates of texts: (n, m) float64, each of length 1, or 0 without a known term.

    φ(x) V, with the term features of the document kernel, w(t)^p · sat(t,x) [KLSA eq. 4]. What a
    document of the index also has, its pairs of words and its distance from the mean, is left out.
    Cost: analysing the texts, and O(m) a term.
    """
    terms = latent_space(index).terms
    settings, snapshot = index.settings, index.arrays
    common = index.analyzer.common() if len(snapshot.common) else frozenset()
    counts = counts_of_texts(([text] for text in texts), index.analyzer, snapshot.vocabulary)
    counts = without_columns(counts, snapshot.common)
    words = [[term for term in index.analyzer.terms(text) if term not in common] for text in texts]
    lengths = np.array([len(terms) for terms in words]) / snapshot.average_content
    saturated = bm25.saturated(counts, lengths, 1.0, settings.kernel_k1, settings.b)
    places = np.asarray(saturated @ terms.astype(np.float64))
    sizes = np.sqrt(np.einsum("nm,nm->n", places, places))[:, None]
    return np.asarray(np.divide(places, sizes, out=places, where=sizes > 0))
