"""Latent semantic indexing, by inner product and by cosine."""

from __future__ import annotations

import numpy as np

from klsa_search.arrays import Scores
from klsa_search.config import SearchSettings
from klsa_search.search.query import QueryTerms
from klsa_search.search.snapshot import Snapshot


def rank_lsi(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """Inner products of log-tf·idf vectors in the truncated space.

    With U the left singular vectors of the features X, q · V Σ Uᵀ = (q Xᵀ) · U Uᵀ: the expansion
    of the raw row, as for every kernel. Cost O(N · k).
    """
    row = snapshot.tfidf_row(query.numbers, np.log1p(query.counts))
    basis = snapshot.lsi[:, :dimensions]
    held = np.flatnonzero(row)
    scores = np.einsum("nk,k->n", basis, np.einsum("z,zk->k", row[held], basis[held]))
    scores[np.abs(scores) <= 1e-6 * np.sqrt(np.square(row).sum())] = 0  # rounding is no match
    return np.asarray(scores)


def rank_lsi_cosine(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """The same divided by the lengths of the documents in that space. Cost O(N · k)."""
    scores = rank_lsi(snapshot, query, parameters, dimensions)
    lengths = snapshot.lsi_lengths(dimensions)
    cosines = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    return np.asarray(cosines)
