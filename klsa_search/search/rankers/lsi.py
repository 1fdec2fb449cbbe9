"""Latent semantic indexing, by inner product and by cosine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Scores
from klsa_search.core.config import SearchSettings
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot


def rank_lsi(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, _: Evidence = LOCAL
) -> Scores:
    """Return inner products of log-tf·idf vectors in the truncated space, or cosines.

    With U the left singular vectors of the features X, q · V Σ Uᵀ = (q Xᵀ) · U Uᵀ: the expansion
    of the raw scores, as for every kernel. `lsi-cosine` divides them by the lengths of the
    documents in that space. Cost O(N · k).
    """
    row = snapshot.lsi.row(query.numbers, np.log1p(query.counts))
    basis = snapshot.lsi.basis[:, : parameters.dimensions]
    matches = np.flatnonzero(row)
    scores = np.einsum("nk,k->n", basis, np.einsum("z,zk->k", row[matches], basis[matches]))
    scores[np.abs(scores) <= 1e-6 * np.sqrt(np.square(row).sum())] = (
        0  # rounding errors are not matches
    )
    if parameters.ranker == "lsi":
        return np.asarray(scores)
    lengths = snapshot.lsi.lengths(parameters.dimensions)
    return np.asarray(np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0))


def lsi_terms(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, document: int
) -> npt.NDArray[np.float64]:
    """Return what each term of a query adds to the score of a document: (n,). Cost O(N · k).

    The cosine is a sum over terms too, since it is divided by the length of the document only.
    """
    basis = snapshot.lsi.basis[:, : parameters.dimensions]
    values = np.zeros(len(query.numbers))
    for at in range(len(values)):
        one = slice(at, at + 1)
        row = snapshot.lsi.row(query.numbers[one], np.log1p(query.counts[one]))
        matches = np.flatnonzero(row)
        values[at] = basis[document] @ np.einsum("z,zk->k", row[matches], basis[matches])
    if parameters.ranker == "lsi":
        return values
    length = snapshot.lsi.lengths(parameters.dimensions)[document]
    return values / length if length > 0 else np.zeros_like(values)
