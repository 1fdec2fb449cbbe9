"""A snapshot: everything a query reads, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search._native import ExpansionModel
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import (
    Basis,
    DocIds,
    DocumentMask,
    Eigenvalues,
    Matrix,
    Numbers,
    Scores,
)
from klsa_search.core.config import Settings
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parameters import RankingSettings
from klsa_search.delta.statistics import FeatureNumbers, trained_statistics, training_of
from klsa_search.errors import IndexDamaged
from klsa_search.kernels.bm25 import mean_length
from klsa_search.kernels.counts import without_columns
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.postings import Segment, Segments, postings_of_arrays
from klsa_search.kernels.query_kernel import QueryKernel, TermWeighting
from klsa_search.kernels.vector_space import VectorSpaces
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.expansion_matrix import Expansion, spectral_function
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.sparse_expansion import (
    NO_REMOTE_ROWS,
    RemoteRows,
    SegmentedExpansion,
    open_sparse_expansion,
    rows_of_shares,
)
from klsa_search.search.engine.engine import Bm25Engine, KlsaEngine, contiguous
from klsa_search.search.engine.evidence import AnswerCache, AnswerView
from klsa_search.search.engine.lsi import MIN_EIGENVECTORS, LsiSpace
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours
from klsa_search.storage.arrays import has_array, open_array, read_vocabulary
from klsa_search.storage.current import step_for
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.names import MANIFEST, folder_of
from klsa_search.storage.partitions import CollectionTerms, number_of_partition
from klsa_search.storage.vectors import open_vectors

if TYPE_CHECKING:
    from scipy import sparse

T = TypeVar("T")

SMALL: Final = 2**13
"""Largest collection that stores its eigenvectors in any case, and complete rows of D."""

FIRST_LATER: Final = 2**40
"""Least ordinal of documents written after the build: more than an index has documents."""


class _shared_property(lazy_property[T]):  # noqa: N801 - a decorator
    """A lazy property that does not depend on which documents are live.

    A snapshot and its restrictions compute it once: it may be as large as the index.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        def shared(snapshot: IndexArrays) -> T:
            if snapshot.unrestricted is None:
                return make(snapshot)
            value: T = getattr(snapshot.unrestricted, make.__name__)
            return value

        super().__init__(shared)
        self.__doc__ = make.__doc__


@dataclass(frozen=True)
class IndexArrays:
    """The arrays of all documents of an index in this process, of one or several partitions.

    generation       folder of its files, of several partitions that of the first
    settings         with which it was built
    vocabulary       terms and their numbers
    query_kernel     BM25 weights and postings
    common           numbers of the common terms, which document features exclude
    lengths          (N,) dl(d) in tokens, by the weights of their fields
    eigenvalues      (k,) of the document kernel
    eigenvectors     U: (N, k) float32; (N, 0) if they are not stored, or not of all documents
    has_spectrum     whether eigenvectors are stored, so that spectral functions can be chosen
    expansion        complete rows of D by the settings: (N, N), if they are stored
    sparse_expansion  the largest entries of each row of K, and features
    forward          words of each document in order, as codes of bytes
    small            whether deep rankings rescore all candidates: by the documents of the training
    live             mask of the live documents, if some are deleted
    reverse          entries of later documents in earlier rows, if any
    average_length   quantised mean length of the saturations; None for that of the build
    vectors          spaces of vectors, by name
    ordinals         of a partition: numbers of the documents of the build in the source
    collection       of a partition: the terms of all partitions at the build
    remote_rows      of a partition: entries of the rows of D in other partitions
    unrestricted     the snapshot that this one is a restriction of, if it is one
    answers          what was read of its documents
    """

    generation: Path
    settings: Settings
    vocabulary: Vocabulary
    query_kernel: QueryKernel
    common: Numbers
    lengths: npt.NDArray[np.int32]
    eigenvalues: Eigenvalues
    eigenvectors: Basis
    has_spectrum: bool
    expansion: Matrix | None
    sparse_expansion: SegmentedExpansion
    forward: Forward
    small: bool
    live: Mask | None = None
    reverse: ReverseNeighbours | None = None
    average_length: float | None = None
    vectors: VectorSpaces = field(default_factory=dict)
    ordinals: Numbers | None = None
    collection: CollectionTerms | None = None
    remote_rows: RemoteRows = NO_REMOTE_ROWS
    unrestricted: IndexArrays | None = None
    answers: AnswerView = field(default_factory=lambda: AnswerCache().present())

    def __len__(self) -> int:
        """Return N, the number of doc ids."""
        return self.query_kernel.size

    def lexical(self, query: QueryTerms) -> Scores:
        """Return k_q of live documents: (N,) float32. Cost: the postings of the query."""
        row = self.query_kernel.query_row(query.numbers, query.counts)
        return row if self.live is None else row * self.live.allowed

    def live_docs(self) -> DocumentMask:
        """Return which documents are live: (N,), not writeable."""
        return self._live_docs

    @lazy_property
    def _live_docs(self) -> DocumentMask:
        live = np.ones(len(self), np.bool_) if self.live is None else self.live.allowed
        live.flags.writeable = False
        return live

    def ordinals_of(self, doc_ids: DocIds) -> Numbers:
        """Return the ordinals of documents, by which those of several partitions are ordered: (n,).

        The ordinal of a document of the build is its number in the source, which no other document
        of the index has. Later documents follow, numbered in each partition from `FIRST_LATER` on.
        """
        numbers = doc_ids.astype(np.int64)
        if self.ordinals is None:
            return numbers
        built = len(self.ordinals)
        positions = np.minimum(numbers, built - 1) if built else numbers
        of_build = self.ordinals[positions] if built else numbers
        return np.where(numbers < built, of_build, FIRST_LATER + numbers)

    def doc_ids_of(self, ordinals: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return the doc ids of ordinals, and which of these are in this partition: (n,) each."""
        if self.ordinals is None:
            return ordinals, ordinals < len(self)
        built = len(self.ordinals)
        positions = np.minimum(np.searchsorted(self.ordinals, ordinals), max(built - 1, 0))
        is_built = (ordinals < FIRST_LATER) & (built > 0)
        if built:
            is_built &= self.ordinals[positions] == ordinals
        later = ordinals - FIRST_LATER
        is_later = (later >= built) & (later < len(self))
        return np.where(is_later, later, positions), is_built | is_later

    def rows_of(self, doc_ids: Sequence[int] | DocIds) -> Numbers:
        """Return the rows of doc ids of the index in arrays of all documents: (n,)."""
        return np.asarray(doc_ids, np.int64)

    def doc_ids_at(self, rows: DocIds) -> Numbers:
        """Return the doc ids of the index of rows in arrays of all documents: (n,)."""
        return rows.astype(np.int64)

    def in_order(self, mask: DocumentMask) -> Numbers:
        """Return the rows of the documents of a mask, in the order of `Index.ids`: (n,)."""
        rows = np.flatnonzero(mask)
        return np.asarray(rows[np.argsort(self.ordinals_of(rows), kind="stable")])

    def nearest(self, document: int) -> DocIds:
        """Return the documents in a row of D, strongest first, and reverse entries."""
        rows = [self.sparse_expansion.rows(np.array([document]))[0]]
        if self.reverse is not None and self.reverse.row_of[document : document + 1].any():
            rows.append(self.reverse.rows[self.reverse.row_of[document] - 1])
        row = np.concatenate(rows)
        return (row[row > 0] >> np.uint32(8)).astype(np.int64)

    def allowed(self, mask: Mask | None) -> Mask | None:
        """Return the live documents of a mask; None stays None: rankers skip deleted documents."""
        return mask if mask is None or self.live is None else mask & self.live

    @_shared_property
    def kernel(self) -> DocumentKernel:
        """The document kernel, unpacked when a spectral function needs it."""
        return self.sparse_expansion.kernel()

    @lazy_property
    def bm25_engine(self) -> Bm25Engine:
        """The engine of BM25."""
        return Bm25Engine(self.query_kernel, self.live)

    @property
    def latent_dimensions(self) -> int:
        """Return m, the number of dimensions of the latent space."""
        settings = self.settings
        return min(settings.dimensions, settings.latent_dimensions, len(self.eigenvalues))

    @_shared_property
    def latent(self) -> LatentSpace:
        """The latent space."""
        space = self.sparse_expansion.latent(self.latent_dimensions)
        # Terms of the delta are not in the space.
        later = len(self.vocabulary) - len(space.terms)
        return replace(space, terms=np.pad(space.terms, ((0, later), (0, 0)))) if later else space

    @_shared_property
    def feature_numbers(self) -> FeatureNumbers:
        """The numbers of terms and pairs that are features. Cost: `FeatureNumbers.of`."""
        postings = self.query_kernel.postings.parts[0].postings
        common = self.common[self.common < len(postings.frequencies)]
        trained = training_of(self.generation, postings, common, self.lengths[: postings.size])
        codes = open_array(self.generation, "feature_pairs")
        return FeatureNumbers.of(codes, trained.frequencies)

    @_shared_property
    def lsi(self) -> LsiSpace:
        """The LSI space, stored or computed at the first use."""
        postings, settings = self.query_kernel.postings, self.settings
        dimensions = min(settings.dimensions, max(len(self.eigenvalues), MIN_EIGENVECTORS))
        return LsiSpace(self.generation, self.forward, postings, dimensions, settings.seed)

    def counts_of(self, documents: DocIds) -> sparse.csr_array:
        """Return f(t,d) of documents: (n, V) sparse."""
        return self.forward.counts(documents)

    def content_counts_of(self, documents: DocIds) -> sparse.csr_array:
        """Return f(t,d) of documents without common terms: (n, V) sparse."""
        return without_columns(self.counts_of(documents), self.common)

    @lazy_property
    def average_content(self) -> float:
        """dl_avg of the document kernel, without common terms; 1 if every document is empty."""
        occurrences = self.query_kernel.postings.occurrences
        tokens = int(occurrences.sum()) - int(occurrences[self.common].sum())
        return mean_length(tokens, self.query_kernel.postings.size)

    @lazy_property
    def slope(self) -> float:
        """The factor s of D = s · K."""
        return self._expansion(self.settings, len(self.eigenvalues)).slope

    def _expansion(self, key: RankingSettings | Settings, dimensions: int) -> Expansion:
        return Expansion.of(
            self.eigenvectors[:, :dimensions],
            self.eigenvalues[:dimensions],
            spectral_function(key.spectral, key.gamma),
            head=key.head,
            kernel=lambda: self.kernel,
        )

    def expansion_of(self, parameters: RankingSettings) -> Expansion:
        """Return D for these parameters, with its stored rows if these are the same."""
        dimensions = parameters.dimensions if self.has_spectrum else len(self.eigenvalues)
        expansion = self._expansion(parameters, dimensions)
        is_stored = dimensions >= self.eigenvectors.shape[1] and all(
            getattr(parameters, name) == getattr(self.settings, name)
            for name in ("spectral", "gamma", "head")
        )
        return replace(expansion, rows=self.expansion) if is_stored else expansion


@dataclass(frozen=True)
class Snapshot(IndexArrays):
    """The arrays of one generation, and those of documents written since."""

    @property
    def partition(self) -> int:
        """Return the number of the partition; 0 if it is the only one."""
        return 0 if self.ordinals is None else number_of_partition(folder_of(self.generation))

    @lazy_property
    def klsa_engine(self) -> KlsaEngine:
        """The engine of the default ranking."""
        expansion, remote = self.sparse_expansion, self.remote_rows
        model = ExpansionModel(
            parts=[segment.native for segment in expansion.segments],
            term_vectors=contiguous(expansion.built.terms, np.int8),
            remote_rows=contiguous(remote.documents, np.uint32),
            remote_levels=contiguous(remote.levels, np.uint8),
            ordinals=None if self.ordinals is None else contiguous(self.ordinals, np.int64),
            dimensions=self.latent_dimensions,
            neighbours=min(self.settings.neighbours, expansion.entries),
        )
        return KlsaEngine(self.query_kernel, model, self.live, self.reverse, small=self.small)

    @_shared_property
    def neighbours(self) -> sparse.csr_array:
        """W, the neighbours of each document with shares of sum 1: (N, N + R).

        The last columns are those of `remote_ordinals`.
        """
        if not len(self.remote_rows.levels):
            return self.sparse_expansion.neighbours(self.settings.neighbours)
        rows = self.klsa_engine.rows(np.arange(len(self)))
        levels = rows.levels[:, : rows.near].astype(np.float32)
        ordinals = rows.documents[:, : rows.near].astype(np.int64)
        doc_ids, is_here = self.doc_ids_of(ordinals.ravel())
        remote = np.searchsorted(self.remote_ordinals, ordinals.ravel())
        columns = np.where(is_here, doc_ids, len(self) + remote).reshape(ordinals.shape)
        return rows_of_shares(columns, levels, (len(self), len(self) + len(self.remote_ordinals)))

    @_shared_property
    def remote_ordinals(self) -> Numbers:
        """Ordinals of documents of other partitions in rows of D, ascending: (R,)."""
        remote = self.remote_rows
        return np.unique(remote.documents[remote.levels > 0]).astype(np.int64)


_OPTIONAL: Final = "eigenvectors", "all_expansion_rows", "ordinals"


def open_snapshot(
    generation: Path,
    settings: Settings,
    vectors: Sequence[SpaceEntry] = (),
    collection: CollectionTerms | None = None,
) -> Snapshot:
    """Map the arrays of a generation; `settings` are those it was built with.

    vectors     spaces of its manifest
    collection  of a partition: the terms of all, by default those of its files

    Cost O(V) for the vocabulary; the rest is read on use. Raise IndexDamaged if a partition has
    other terms than `collection` says.
    """
    trained = trained_statistics(generation)
    segment = Segment(0, postings_of_arrays(partial(open_array, generation), settings.k1))
    forward = Forward.open(generation, settings.searched_fields)
    if collection is None:
        terms = read_vocabulary(generation)
        build_terms = len(terms) if trained is None else len(trained.frequencies)
        vocabulary = Vocabulary(terms[:build_terms])
        if trained is not None:
            vocabulary = vocabulary.extended(terms[build_terms:])
    else:
        vocabulary = collection.vocabulary
        numbers = collection.numbers_of(number_of_partition(folder_of(generation)))
        if len(segment.postings.frequencies) != len(numbers):
            file = generation / MANIFEST
            raise IndexDamaged(f"`{file}` is not of the build of its index; {step_for(file)}")
        if len(numbers) < len(vocabulary):
            segment = Segment.of(0, segment.postings, numbers)
            forward = forward.renumbered(numbers, len(vocabulary))
    optional = {
        name: open_array(generation, name) for name in _OPTIONAL if has_array(generation, name)
    }
    stored = "eigenvectors" in optional
    common = np.zeros(0, np.int64)
    if settings.common_weight < 1:
        words = sorted(Analyzer(settings).common() & vocabulary.numbers.keys())
        common = np.array([vocabulary.numbers[word] for word in words], np.int64)
    query_kernel = QueryKernel.of(
        Segments([segment], len(vocabulary)),
        weighting=TermWeighting(settings.burstiness, common, settings.common_weight, settings.idf),
    )
    if trained is not None and "ordinals" not in optional:  # after a compaction
        vocabulary = vocabulary.without(query_kernel.counts.frequencies == 0)
        small = trained.documents <= SMALL
    else:
        small = stored
    snapshot = Snapshot(
        generation=generation,
        settings=settings,
        vocabulary=vocabulary,
        query_kernel=query_kernel,
        common=common,
        lengths=open_array(generation, "lengths"),
        eigenvalues=open_array(generation, "eigenvalues"),
        eigenvectors=optional.get("eigenvectors", np.zeros((query_kernel.size, 0), np.float32)),
        has_spectrum=stored,
        small=small,
        expansion=optional.get("all_expansion_rows"),
        sparse_expansion=SegmentedExpansion(
            [open_sparse_expansion(partial(open_array, generation))]
        ),
        forward=forward,
        vectors=open_vectors(generation, vectors),
        ordinals=optional.get("ordinals"),
        collection=collection,
        remote_rows=RemoteRows(
            open_array(generation, "remote_rows"), open_array(generation, "remote_levels")
        )
        if has_array(generation, "remote_rows")
        else NO_REMOTE_ROWS,
    )
    if has_array(generation, "lsi_eigenvectors"):
        # Mapped now, so that an open index still works after its files are deleted.
        _ = snapshot.lsi.arrays
    return snapshot
