"""An epoch: the statistics of a build, by which documents that come later are weighed.

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.analysis import Analyzer
from klsa_search.config import Settings
from klsa_search.delta.pairs import Pairs, encode_pairs
from klsa_search.expansion.cut import CutExpansion, cut_of_arrays
from klsa_search.expansion.packing import NUMBERS
from klsa_search.features import bm25
from klsa_search.features.counts import TermCounts
from klsa_search.features.vocabulary import Vocabulary
from klsa_search.kernel.postings import Postings, postings_of_arrays
from klsa_search.kernel.segments import aligned
from klsa_search.lazily import lazily
from klsa_search.store.arrays import open_array


def epoch_arrays(counts: TermCounts, settings: Settings) -> dict[str, npt.NDArray[Any]]:
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
class Epoch:
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
    cut: CutExpansion
    ranks: npt.NDArray[np.int32]
    common: frozenset[str]
    pairs: Pairs
    average: float
    content: float

    @lazily
    def standing(self) -> float:
        """The mean length that its postings were saturated with."""
        return bm25.standing_length(self.average)

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

    @lazily
    def mean_square(self) -> float:
        """‖μ‖²."""
        return self.cut.mean_square

    @lazily
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


def open_epoch(generation: Path, settings: Settings, vocabulary: Vocabulary) -> Epoch:
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
    return Epoch(
        settings=settings,
        vocabulary=vocabulary,
        postings=postings,
        cut=cut_of_arrays(array),
        ranks=array("forward_ranks"),
        common=common,
        pairs=Pairs.of(array("epoch_pairs"), frequencies),
        average=bm25.average_length(array("lengths")),
        content=bm25.mean_length(content, postings.size),
    )
