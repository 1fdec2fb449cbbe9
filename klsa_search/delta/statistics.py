"""The statistics of a build, which weight documents written later.

    trained_frequencies.npy, trained_scalars.npy
                       of a partition, or after a compaction: statistics of the documents of the
                       training; without them, the build's own are used
    feature_pairs.npy  uint8, in unsigned LEB128: for each term the number of pairs of which it is
                       the lesser term, then for each pair the difference of the greater term from
                       the previous one, and its document frequency minus 2

About three bytes a pair. Features are numbered as in `lowrank.sparse_expansion`: by descending
document frequency, then terms before pairs, terms in order and pairs by their keys. So numbers and
weights follow from document frequencies and are not stored.

The features of a document depend on document frequencies, the mean length and the mean document.
All of them stay those of the build until the next one, so that K is one function of any two
documents, old or new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask, Numbers, SparseRows
from klsa_search.core.config import Settings
from klsa_search.core.lazy import lazy_property
from klsa_search.kernels.bm25 import average_length, mean_length, quantised_length
from klsa_search.kernels.counts import TermCounts
from klsa_search.kernels.postings import Postings, postings_of_arrays
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.kernels.weighting import FeatureWeighting, feature_weighting
from klsa_search.lowrank.sparse_expansion import NUMBERS, SparseExpansion, open_sparse_expansion
from klsa_search.storage.arrays import has_array, open_array
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import Manifest

_Codes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class FeatureNumbers:
    """The numbers of the features of a build: its terms, and pairs of terms.

    terms        (V,) of each term
    starts       (V + 1,) start of the pairs of each lesser term
    greater      (P,) their greater terms, ascending
    pairs        (P,) their feature numbers
    levels       (n,) ascending, the first feature of each document frequency
    frequencies  (n,) these frequencies, descending
    """

    terms: _Ints
    starts: Numbers
    greater: _Ints
    pairs: _Ints
    levels: Numbers
    frequencies: Numbers

    @classmethod
    def of(cls, codes: _Codes, frequencies: npt.NDArray[np.integer[Any]]) -> FeatureNumbers:
        """Return the features of V terms with these document frequencies, and of pairs.

        Cost: O(V + P), 20 ns a pair. Memory: 8 bytes a pair, 16 meanwhile.
        """
        terms = len(frequencies)
        starts, greater, pair_frequencies = _native.decode_pairs(codes, terms)
        feature_frequencies = np.concatenate((frequencies.astype(np.int32), pair_frequencies))
        sizes = np.bincount(feature_frequencies)
        present = np.flatnonzero(sizes)[::-1]
        levels = np.cumsum(sizes[present]) - sizes[present]
        next_numbers = np.zeros(len(sizes), np.int64)
        next_numbers[present] = levels
        _native.number_features(feature_frequencies, next_numbers)
        numbers = feature_frequencies
        return cls(numbers[:terms], starts, greater, numbers[terms:], levels, present)

    @lazy_property
    def by_number(self) -> _Ints:
        """Return the term or V + pair of each feature number: (V + P,).

        Cost: 5 ns and 4 bytes a feature, once.
        """
        terms = len(self.terms)
        by_number = np.empty(terms + len(self.pairs), np.int32)
        by_number[self.terms] = np.arange(terms, dtype=np.int32)
        by_number[self.pairs] = np.arange(terms, len(by_number), dtype=np.int32)
        return by_number

    def name(self, number: int, terms: Sequence[str]) -> str:
        """Return the term of a feature number, or the two terms of its pair.

        terms  by number: those of the build, and perhaps later ones
        """
        size, position = len(self.terms), int(self.by_number[number])
        if position < size:
            return terms[position]
        lesser = int(np.searchsorted(self.starts, position - size, side="right")) - 1
        return f"{terms[lesser]} {terms[int(self.greater[position - size])]}"

    def document_frequencies(self, features: npt.NDArray[np.integer[Any]]) -> Numbers:
        """Return the document frequencies of feature numbers: (n,)."""
        return self.frequencies[np.searchsorted(self.levels, features, side="right") - 1]

    def find(self, keys: Numbers, terms: int) -> _Ints:
        """Return the numbers of pair keys lesser · terms + greater, -1 for unknown pairs: (n,)."""
        return _native.find_pairs(keys, terms, self.starts, self.greater, self.pairs)


def statistics_arrays(counts: TermCounts, settings: Settings) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the statistics of a build. Cost: O(nnz + P log P)."""
    terms = len(counts.vocabulary)
    frequencies = counts.content.document_frequencies
    keys = counts.pair_keys if settings.pairs else counts.pair_keys[:0]
    pair_frequencies = np.bincount(counts.pairs.indices, minlength=len(counts.pair_keys))
    pair_frequencies = pair_frequencies[: len(keys)]
    if terms + len(keys) > NUMBERS:
        all_frequencies = np.concatenate((frequencies, pair_frequencies))
        numbered = most_frequent(all_frequencies, NUMBERS)[terms:]
        keys, pair_frequencies = keys[numbered], pair_frequencies[numbered]
    codes = _native.encode_pairs(keys, pair_frequencies.astype(np.int64, copy=False), terms)
    return {"feature_pairs": codes}


def most_frequent(frequencies: npt.NDArray[np.integer[Any]], most: int) -> npt.NDArray[np.bool_]:
    """Return which features get numbers: the most frequent, and the first of equal ones: (n,)."""
    at_least = np.cumsum(np.bincount(frequencies)[::-1])[::-1]
    last = int(np.count_nonzero(at_least > most)) - 1  # the frequency of which not all have one
    numbered: npt.NDArray[np.bool_] = frequencies > last
    equal = np.flatnonzero(frequencies == last)
    numbered[equal[: most - np.count_nonzero(numbered)]] = True
    return numbered


class TrainedStatistics(NamedTuple):
    """Statistics of the documents that weight features.

    documents            their number
    mean_content_length  their mean length without common terms
    length               their mean length, quantised
    frequencies          (V,) document frequencies of terms, 0 for common ones
    """

    documents: int
    mean_content_length: float
    length: float
    frequencies: Numbers

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a partition stores, and a compaction."""
        scalars = np.array([self.documents, self.mean_content_length, self.length], np.float64)
        return {"trained_frequencies": self.frequencies, "trained_scalars": scalars}


TRAINED: Final = "trained_documents"


def trained_documents(generation: Path, manifest: Manifest) -> DocumentMask:
    """Return which documents of a generation have the words of a document of the training: (N,).

    All, unless by a compaction: then the first ones, and those whose other fields were written
    again later.
    """
    documents = manifest.counts.documents
    if has_array(generation, TRAINED):
        mask: DocumentMask = open_array(generation, TRAINED)
        return mask
    return np.arange(documents) < (documents if manifest.trained is None else manifest.trained)


def trained_statistics(generation: Path) -> TrainedStatistics | None:
    """Return the statistics that a generation stores; None if they are those of its documents."""
    if not has_array(generation, "trained_scalars"):
        return None
    documents, content_length, length = open_array(generation, "trained_scalars").tolist()
    frequencies = open_array(generation, "trained_frequencies")
    return TrainedStatistics(int(documents), content_length, length, frequencies)


def training_of(
    generation: Path, postings: Postings, common: Numbers, lengths: npt.NDArray[np.int32]
) -> TrainedStatistics:
    """Return the statistics of the training of a generation: those stored, or of its documents.

    postings, lengths  of the generation
    common             numbers of its common terms
    """
    trained = trained_statistics(generation)
    if trained is not None:
        return trained
    frequencies, occurrences = postings.frequencies.copy(), postings.occurrences.copy()
    frequencies[common] = occurrences[common] = 0
    return TrainedStatistics(
        postings.size,
        mean_length(int(occurrences.sum()), postings.size),
        quantised_length(average_length(lengths)),
        frequencies,
    )


@dataclass(frozen=True)
class BuildStatistics:
    """The arrays of a generation, and derived statistics; immutable.

    vocabulary           of the generation
    postings             of its query kernel
    expansion            its rows, features and document vectors
    forward              its forward index
    common               the common terms, which are not features and form no pairs
    feature_numbers      of terms and pairs
    trained              statistics by which features are weighted
    """

    settings: Settings
    vocabulary: Vocabulary
    postings: Postings
    expansion: SparseExpansion
    forward: Forward
    common: frozenset[str]
    feature_numbers: FeatureNumbers
    trained: TrainedStatistics

    @lazy_property
    def weighting(self) -> FeatureWeighting:
        """Return the weighting of features."""
        return feature_weighting(self.settings)

    @property
    def documents(self) -> int:
        """Return N, the number of documents of the build, and the doc id of the first later one."""
        return self.postings.size

    @property
    def terms(self) -> int:
        """Return V, the number of terms that are features."""
        return len(self.feature_numbers.terms)

    @lazy_property
    def centre(self) -> npt.NDArray[np.float64]:
        """Return the mean document in the latent space: (m,). Cost: O(V · m)."""
        features = self.feature_numbers.terms
        is_known = features < len(self.expansion.mean)
        mean = np.zeros(self.terms)
        mean[is_known] = self.expansion.mean[features[is_known]]
        terms = np.flatnonzero(mean)
        saturations = mean[terms] / self.weights(features[terms])
        starts = np.array([0, len(terms)])
        rows = SparseRows(starts, terms, saturations, (1, self.terms))
        return np.asarray(self.latent_positions(rows)[0])

    @property
    def dimensions(self) -> int:
        """Return the dimensions of the latent space, with those that pad a term's vector."""
        return int(self.expansion.terms.shape[1]) - 4

    def weights(self, features: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Return w^p of feature numbers: (n,)."""
        frequencies = self.feature_numbers.document_frequencies(features)
        return self.weighting.weight(frequencies, self.trained.documents)

    def latent_positions(self, saturated: SparseRows) -> npt.NDArray[np.float64]:
        """Return Σ_t sat(t,d) · vector(t) of documents (n, V) in the latent space: (n, m)."""
        terms, m = self.expansion.terms, self.dimensions
        positions = np.zeros((saturated.shape[0], m))
        steps = terms.view(np.float32)[:, -1]
        for d, (begin, end) in enumerate(
            zip(saturated.indptr[:-1], saturated.indptr[1:], strict=True)
        ):
            columns = saturated.indices[begin:end]
            factors = saturated.data[begin:end] * steps[columns]
            positions[d] = np.einsum("t,tm->m", factors, terms[columns, :m])
        return positions


def open_statistics(
    generation: Path, settings: Settings, vocabulary: Vocabulary, forward: Forward
) -> BuildStatistics:
    """Open the statistics of a generation.

    Cost: O(V + P), 0.1 s for a million pairs. Raise IndexDamaged if an array cannot be read.
    """
    array = partial(open_array, generation)
    postings = postings_of_arrays(array, settings.k1)
    common = Analyzer(settings).common() if settings.common_weight < 1 else frozenset()
    numbers = [vocabulary.numbers[term] for term in common if term in vocabulary.numbers]
    trained = training_of(generation, postings, np.array(numbers, np.int64), array("lengths"))
    return BuildStatistics(
        settings=settings,
        vocabulary=vocabulary,
        postings=postings,
        expansion=open_sparse_expansion(array),
        forward=forward,
        common=common,
        feature_numbers=FeatureNumbers.of(array("feature_pairs"), trained.frequencies),
        trained=trained,
    )
