"""A snapshot: everything a query reads, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from klsa_search.arrays import Basis
from klsa_search.expansion import Expansion, FactoredExpansion, WholeExpansion
from klsa_search.features import Vocabulary
from klsa_search.kernel import Postings
from klsa_search.store.arrays import has_array, open_array, read_vocabulary


@dataclass(frozen=True)
class Snapshot:
    """The arrays of one generation, opened.

    bm25, tfidf   postings of the two query kernels, over the same entries
    expansion     D of the BM25 document kernel, in the form it is stored
    eigenvectors  its U: (N, k) float32
    lsi           U of the log-tf·idf features: (N, k) float32
    """

    vocabulary: Vocabulary
    bm25: Postings
    tfidf: Postings
    expansion: Expansion
    eigenvectors: Basis
    lsi: Basis

    def __len__(self) -> int:
        """N, the number of documents."""
        return self.bm25.size

    def expansion_of(self, dimensions: int) -> Expansion:
        """D of the first `dimensions` eigenvectors; as stored if that is all of them."""
        if dimensions >= self.eigenvectors.shape[1]:
            return self.expansion
        return FactoredExpansion(self.eigenvectors[:, :dimensions])


def open_snapshot(generation: Path) -> Snapshot:
    """Map the arrays of a generation. Cost O(V) for the vocabulary; the rest is read on use."""
    starts = open_array(generation, "postings_starts")
    documents = open_array(generation, "postings_documents")
    eigenvectors = open_array(generation, "eigenvectors")

    def postings(weights: str) -> Postings:
        return Postings(starts, documents, open_array(generation, weights), len(eigenvectors))

    whole = has_array(generation, "expansion")
    return Snapshot(
        vocabulary=Vocabulary(read_vocabulary(generation)),
        bm25=postings("postings_bm25"),
        tfidf=postings("postings_tfidf"),
        expansion=WholeExpansion(open_array(generation, "expansion"))
        if whole
        else FactoredExpansion(eigenvectors),
        eigenvectors=eigenvectors,
        lsi=open_array(generation, "lsi_eigenvectors"),
    )
