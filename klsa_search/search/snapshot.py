"""A snapshot: everything a query reads, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import Basis, Eigenvalues, Matrix, Scores
from klsa_search.config import SearchSettings
from klsa_search.expansion import Expansion, FactoredExpansion, LatentSpace, WholeExpansion
from klsa_search.features import Vocabulary
from klsa_search.kernel import DocumentKernel, Postings
from klsa_search.kernel.bounds import bounds_of_arrays
from klsa_search.search.engine import Engine
from klsa_search.spectrum import SPECTRAL_FUNCTIONS
from klsa_search.store.arrays import has_array, open_array, read_vocabulary
from klsa_search.store.sparse import open_sparse


@dataclass(frozen=True)
class Snapshot:
    """The arrays of one generation, opened.

    bm25, tfidf      postings of the two query kernels, over the same entries
    engine           the k best by the BM25 postings, without a score for every document
    idf              (V,) w(t) of BM25
    eigenvectors     U of the document kernel: (N, k) float32
    eigenvalues      (k,)
    expansion        D of the index's own spectral function, if it is stored whole
    expansion_key    what D was made with: spectral function, γ and head
    neighbours       (N, N) the graph of coverage, if it was built
    latent           the latent space, if it was built
    lsi              U of the log-tf·idf features: (N, k) float32
    lsi_eigenvalues  (k,)
    """

    generation: Path
    vocabulary: Vocabulary
    bm25: Postings
    tfidf: Postings
    engine: Engine
    idf: npt.NDArray[np.float32]
    eigenvectors: Basis
    eigenvalues: Eigenvalues
    expansion: Matrix | None
    expansion_key: tuple[str, float, int]
    neighbours: sparse.csr_array | None
    latent: LatentSpace | None
    lsi: Basis
    lsi_eigenvalues: Eigenvalues

    def __len__(self) -> int:
        """N, the number of documents."""
        return self.bm25.size

    @cached_property
    def kernel(self) -> DocumentKernel:
        """The document kernel, opened when a spectral function first asks for its tail."""
        mean = open_array(self.generation, "features_mean")
        return DocumentKernel(
            open_sparse(self.generation, "features", len(mean)),
            open_array(self.generation, "features_scales"),
            mean,
        )

    @cached_property
    def forward(self) -> sparse.csr_array:
        """f(t,d): (N, V), the terms of each document, opened when feedback first asks for them."""
        return open_sparse(self.generation, "forward", len(self.vocabulary))

    def lsi_lengths(self, dimensions: int) -> Scores:
        """Lengths of the documents on the first dimensions of LSI: (N,); of all, computed once."""
        if dimensions >= self.lsi.shape[1]:
            return self._lsi_lengths
        return _lengths(self.lsi[:, :dimensions], self.lsi_eigenvalues[:dimensions])

    @cached_property
    def _lsi_lengths(self) -> Scores:
        return _lengths(self.lsi, self.lsi_eigenvalues)

    def expansion_of(self, parameters: SearchSettings, dimensions: int) -> Expansion:
        """D of these parameters: as stored if it is that one, else from its factors."""
        factors = FactoredExpansion.of(
            self.eigenvectors[:, :dimensions],
            self.eigenvalues[:dimensions],
            SPECTRAL_FUNCTIONS[parameters.spectral](parameters.gamma),
            head=parameters.head,
            kernel=lambda: self.kernel,
        )
        key = (parameters.spectral, parameters.gamma, parameters.head)
        # Where f is linear the tail is all of D, however many eigenvectors are asked for.
        same = dimensions >= self.eigenvectors.shape[1] or not factors.correction.any()
        if self.expansion is not None and same and key == self.expansion_key:
            return WholeExpansion(self.expansion)
        return factors


def open_snapshot(generation: Path, parameters: SearchSettings) -> Snapshot:
    """Map the arrays of a generation; `parameters` are those it was built with.

    Cost O(V) for the vocabulary; the rest is read on use.
    """
    starts = open_array(generation, "postings_starts")
    documents = open_array(generation, "postings_documents")
    eigenvectors = open_array(generation, "eigenvectors")
    size = len(eigenvectors)

    def postings(weights: str) -> Postings:
        return Postings(starts, documents, open_array(generation, weights), size)

    bm25 = postings("postings_bm25")
    bounds = bounds_of_arrays(partial(open_array, generation), size)
    return Snapshot(
        generation=generation,
        vocabulary=Vocabulary(read_vocabulary(generation)),
        bm25=bm25,
        tfidf=postings("postings_tfidf"),
        engine=Engine(bm25, bounds),
        idf=open_array(generation, "idf"),
        eigenvectors=eigenvectors,
        eigenvalues=open_array(generation, "eigenvalues"),
        expansion=_optional(generation, "expansion"),
        expansion_key=(parameters.spectral, parameters.gamma, parameters.head),
        neighbours=open_sparse(generation, "neighbours", size)
        if has_array(generation, "neighbours_starts")
        else None,
        latent=LatentSpace(
            open_array(generation, "latent_documents"), open_array(generation, "latent_terms")
        )
        if has_array(generation, "latent_documents")
        else None,
        lsi=open_array(generation, "lsi_eigenvectors"),
        lsi_eigenvalues=open_array(generation, "lsi_eigenvalues"),
    )


def _optional(generation: Path, name: str) -> Matrix | None:
    return open_array(generation, name) if has_array(generation, name) else None


def _lengths(basis: Basis, eigenvalues: Eigenvalues) -> Scores:
    squares = np.einsum("nk,nk,k->n", basis, basis, eigenvalues.astype(np.float32))
    return np.asarray(np.sqrt(squares))
