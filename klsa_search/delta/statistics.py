"""The statistics of a build, which weight documents written later.

    epoch_pairs.npy  uint8  codes of `storage.forward_index`: for each term how many pairs it is the lesser
                            term of, then for each of them the distance of the greater term to that
                            of the one before, and how many documents hold the pair, less two

Some three bytes a pair. Features are numbered as `lowrank.sparse_expansion` numbers them: the most frequent
first, among equals terms before pairs, terms in order and pairs by their keys; so numbers and
weights follow from how often each is held, and are not kept.

    encode_pairs(keys, frequencies, V) -> codes;  Pairs.of(codes, term frequencies) -> Pairs

What a document's features are hangs on how many documents hold a term or pair, on the mean length
and on the mean document. All of them stay those of the build until the next one, so that K between
any two documents, old or new, is one function.

    write: epoch_arrays(counts, settings) -> {"epoch_pairs": ...}, next to the other arrays
    open_epoch(generation, settings, vocabulary) -> Epoch
    Epoch.first: position of the first document that comes later
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import lazy_property
from klsa_search.core.compiling import compiled
from klsa_search.core.config import Settings
from klsa_search.kernels import bm25
from klsa_search.kernels.counts import TermCounts
from klsa_search.kernels.postings import Postings, postings_of_arrays
from klsa_search.kernels.segments import aligned
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.sparse_expansion import NUMBERS, SparseExpansion, open_sparse_expansion
from klsa_search.storage.arrays import open_array
from klsa_search.storage.forward_index import MAX_CODE_BYTES, read_code, write_code

LEAST: Final = 2
"""Documents that hold a pair, at least."""

_Codes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int32]
_Keys = npt.NDArray[np.int64]


def encode_pairs(
    keys: _Keys,
    frequencies: npt.NDArray[np.integer[Any]],
    terms: int,
    first: int = 0,
    after: int | None = None,
) -> _Codes:
    """Encode pairs, keys ascending, of V = `terms` terms. Cost O(V + P); memory 10 bytes a pair.

    first, after  the lesser terms that all of them have, if not of all; codes go end to end
    """
    after = terms if after is None else after
    codes = np.empty(MAX_CODE_BYTES * (after - first + 2 * len(keys)), np.uint8)
    end = _encode(keys, frequencies.astype(np.int64), terms, first, after, codes)
    return codes[:end].copy()


@dataclass(frozen=True)
class Pairs:
    """The features of an epoch.

    terms        (V,) the number of each term among the features
    starts       (V + 1,) where the pairs of each lesser term begin
    greater      (P,) their greater terms, ascending
    numbers      (P,) their numbers among the features
    levels       (n,) ascending, the first feature of each number of documents that there is
    frequencies  (n,) and that number, descending
    """

    terms: _Ints
    starts: _Keys
    greater: _Ints
    numbers: _Ints
    levels: _Keys
    frequencies: _Keys

    @classmethod
    def of(cls, codes: _Codes, frequencies: npt.NDArray[np.integer[Any]]) -> Pairs:
        """Number the features of V terms, held by so many documents, and of pairs.

        Cost O(V + P): 20 ns a pair; memory 8 bytes a pair, 16 while it works.
        """
        terms = len(frequencies)
        pairs = (int(np.count_nonzero(codes < 0x80)) - terms) // 2
        starts, greater = np.zeros(terms + 1, np.int64), np.empty(pairs, np.int32)
        held = np.empty(terms + pairs, np.int32)
        held[:terms] = frequencies
        _decode(codes, starts, greater, held)
        sizes = np.bincount(held)
        found = np.flatnonzero(sizes)[::-1]
        levels = np.cumsum(sizes[found]) - sizes[found]
        places = np.zeros(len(sizes), np.int64)
        places[found] = levels
        _number(held, places)
        return cls(held[:terms], starts, greater, held[terms:], levels, found)

    def __len__(self) -> int:
        """P, the number of pairs."""
        return len(self.greater)

    @lazy_property
    def places(self) -> _Ints:
        """Where each feature stands: (V + P,) its place among terms, or V and that among pairs.

        Cost: 5 ns and 4 bytes a feature, once.
        """
        terms = len(self.terms)
        places = np.empty(terms + len(self), np.int32)
        places[self.terms] = np.arange(terms, dtype=np.int32)
        places[self.numbers] = np.arange(terms, len(places), dtype=np.int32)
        return places

    def held_by(self, features: npt.NDArray[np.integer[Any]]) -> _Keys:
        """How many documents of the epoch hold features: (n,) of their numbers."""
        return self.frequencies[np.searchsorted(self.levels, features, side="right") - 1]

    def find(self, keys: _Keys, terms: int) -> _Ints:
        """Numbers of pairs, -1 for what is no feature: (n,) of keys lesser · terms + greater."""
        numbers = np.empty(len(keys), np.int32)
        _find(keys, terms, self.starts, self.greater, self.numbers, numbers)
        return numbers


@compiled
def _encode(
    keys: Any, frequencies: Any, terms: int, first_term: int, after_term: int, codes: Any
) -> int:
    at, pair = 0, 0
    for lesser in range(first_term, after_term):
        first = np.int64(lesser) * terms
        after = pair
        while after < len(keys) and keys[after] < first + terms:
            after += 1
        at = write_code(codes, at, after - pair)
        before = first
        while pair < after:
            at = write_code(codes, at, keys[pair] - before)
            at = write_code(codes, at, frequencies[pair] - LEAST)
            before = keys[pair]
            pair += 1
    return at


@compiled
def _decode(codes: Any, starts: Any, greater: Any, held: Any) -> None:
    """Write where each term's pairs begin, the greater terms, how many documents hold each pair."""
    at, end, pair = 0, len(codes), 0
    terms = len(starts) - 1
    for lesser in range(terms):
        size, at = read_code(codes, at, end)
        starts[lesser + 1] = starts[lesser] + size
        other = 0
        for _ in range(size):
            gap, at = read_code(codes, at, end)
            other += gap
            greater[pair] = other
            times, at = read_code(codes, at, end)
            held[terms + pair] = times + LEAST
            pair += 1


@compiled
def _number(held: Any, places: Any) -> None:
    """Replace how many documents hold a feature by its number."""
    for feature in range(len(held)):
        frequency = held[feature]
        held[feature] = places[frequency]
        places[frequency] += 1


@compiled
def _find(keys: Any, terms: int, starts: Any, greater: Any, numbers: Any, found: Any) -> None:
    known = len(starts) - 1
    for i in range(len(keys)):
        lesser = keys[i] // terms
        other = keys[i] - lesser * terms
        found[i] = -1
        if other >= known:  # the greater of the two
            continue
        low, stop = starts[lesser], starts[lesser + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if greater[middle] < other:
                low = middle + 1
            else:
                high = middle
        if low < stop and greater[low] == other:
            found[i] = numbers[low]


def statistics_arrays(counts: TermCounts, settings: Settings) -> dict[str, npt.NDArray[Any]]:
    """Make what an index with a cut D keeps for documents to come. Cost O(nnz + P log P)."""
    terms = len(counts.vocabulary)
    frequencies = counts.content.document_frequencies
    keys = counts.pair_keys if settings.pairs else counts.pair_keys[:0]
    held = np.bincount(counts.pairs.indices, minlength=len(counts.pair_keys))[: len(keys)]
    if terms + len(keys) > NUMBERS:
        all_held = np.concatenate((frequencies, held))
        kept = Numbered.of(np.bincount(all_held), NUMBERS).among(all_held)[terms:]
        keys, held = keys[kept], held[kept]
    return {"epoch_pairs": encode_pairs(keys, held, terms)}


class Numbered(NamedTuple):
    """Which features have numbers, where there are more than can be numbered: those of the most
    documents, among equals the first. What has no number is no feature.

    above  what more documents hold than this has a number,
    equal  and of what just as many hold the first so many
    """

    above: int
    equal: int

    @classmethod
    def of(cls, sizes: npt.NDArray[np.integer[Any]], most: int) -> Numbered:
        """Find them, of how many features there are that 0, 1, 2 ... documents hold."""
        more = np.cumsum(sizes[::-1])[::-1]
        above = int(np.count_nonzero(more > most)) - 1
        if above < 0:
            return cls(-1, 0)
        return cls(above, most - int(more[above] - sizes[above]))

    def among(self, held: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Which of some features, in order and none before them, have one: (n,)."""
        equal = held == self.above
        return np.asarray((held > self.above) | (equal & (np.cumsum(equal) <= self.equal)))


@dataclass(frozen=True)
class BuildStatistics:
    """The arrays of a generation whose D is cut, and what follows from them; immutable.

    vocabulary  of the generation
    postings    of its query kernel
    cut         its rows, features and cards
    ranks       (V,) of each term in the codes of the forward index
    common      the common terms, which are no features and make no pairs
    pairs       its pairs, and the numbers of all features
    average     mean length of its documents
    content     the same without common terms
    """

    settings: Settings
    vocabulary: Vocabulary
    postings: Postings
    cut: SparseExpansion
    ranks: npt.NDArray[np.int32]
    common: frozenset[str]
    pairs: Pairs
    average: float
    content: float

    @lazy_property
    def standing(self) -> float:
        """The mean length that its postings were saturated with."""
        return bm25.quantised_length(self.average)

    @property
    def first(self) -> int:
        """Position of the first document that comes later: a multiple of 64."""
        return aligned(self.documents)

    @property
    def documents(self) -> int:
        """N, the number of its documents."""
        return self.postings.size

    @property
    def terms(self) -> int:
        """V, the number of its terms."""
        return len(self.pairs.terms)

    @lazy_property
    def mean_square(self) -> float:
        """‖μ‖²."""
        return self.cut.mean_square

    @lazy_property
    def centre(self) -> npt.NDArray[np.float64]:
        """Where the mean document lies in the latent space, by its terms: (m,). Cost O(V · m)."""
        features = self.pairs.terms
        known = features < len(self.cut.mean)
        mean = np.zeros(self.terms)
        mean[known] = self.cut.mean[features[known]]
        saturations = sparse.csr_array((mean / self.weights(features))[None])
        return np.asarray(self.places(saturations)[0])

    @property
    def dimensions(self) -> int:
        """Of the latent space, and those that fill a term's place up, which are 0."""
        return int(self.cut.terms.shape[1]) - 4

    def weights(self, features: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """w^p of features: (n,) of their numbers."""
        held = self.pairs.held_by(features)
        return np.asarray(bm25.idf_of(held, self.documents) ** self.settings.idf_power)

    def places(self, saturated: sparse.csr_array) -> npt.NDArray[np.float64]:
        """Σ_t sat(t,d) of documents (n, V) times what t adds to a place: (n, m)."""
        terms, m = self.cut.terms, self.dimensions
        places = np.zeros((saturated.shape[0], m))
        steps = terms.view(np.float32)[:, -1]
        for d, (begin, end) in enumerate(
            zip(saturated.indptr[:-1], saturated.indptr[1:], strict=True)
        ):
            held = saturated.indices[begin:end]
            factors = saturated.data[begin:end] * steps[held]
            places[d] = np.einsum("t,tm->m", factors, terms[held, :m])
        return places


def open_statistics(
    generation: Path, settings: Settings, vocabulary: Vocabulary
) -> BuildStatistics:
    """Open that of a generation whose D is cut; its vocabulary has been read.

    Cost O(V + P): 0.1 s for a million pairs. IndexDamaged where an array cannot be read.
    """
    array = partial(open_array, generation)
    postings = postings_of_arrays(array, settings.k1)
    common = Analyzer(settings).common() if settings.common_weight < 1 else frozenset()
    apart = [vocabulary.numbers[term] for term in common if term in vocabulary.numbers]
    frequencies, occurrences = postings.frequencies.copy(), postings.occurrences.copy()
    frequencies[apart] = occurrences[apart] = 0
    content = int(occurrences.sum())
    return BuildStatistics(
        settings=settings,
        vocabulary=vocabulary,
        postings=postings,
        cut=open_sparse_expansion(array),
        ranks=array("forward_ranks"),
        common=common,
        pairs=Pairs.of(array("epoch_pairs"), frequencies),
        average=bm25.average_length(array("lengths")),
        content=bm25.mean_length(content, postings.size),
    )
