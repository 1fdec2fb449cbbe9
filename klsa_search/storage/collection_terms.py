"""The terms of all partitions of an index that its training does not number.

They are a folder next to the partitions, with a generation of its own but without documents, so
that checksums, backups and followers treat it as a partition:

    <home>/<name>/000001-terms/000001/

    vocabulary.txt            the terms of the training
    terms, terms_starts       the terms, sorted: see `SortedTerms`
    places, places_starts     of the terms of each partition among them, partition by partition
    frequencies, occurrences  of the terms of the training, then of these: of the build, int64

A term of the build has one number in all partitions: that of the training, or its place among these
terms after those.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from klsa_search.kernels.vocabulary import SortedTerms, Vocabulary
from klsa_search.storage.arrays import open_array, read_vocabulary
from klsa_search.storage.checksums import check_once
from klsa_search.storage.generations import check_sizes
from klsa_search.storage.manifest import read_manifest

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CollectionTerms:
    """The terms of all partitions of a build, and their statistics.

    trained  terms of the training
    terms    T others
    places, starts  see the module
    counts   document frequencies and occurrences in all partitions: (V + T,) each
    """

    trained: Vocabulary
    terms: SortedTerms
    places: npt.NDArray[np.int32]
    starts: _Numbers
    counts: tuple[_Numbers, _Numbers]

    def places_of(self, partition: int) -> npt.NDArray[np.int32]:
        """Return the places of the terms of a partition that the training lacks, ascending."""
        return self.places[self.starts[partition] : self.starts[partition + 1]]


def open_collection_terms(generation: Path) -> CollectionTerms:
    """Open the terms of an index in partitions; IndexDamaged. Cost: that of `trained`."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    names = "terms", "terms_starts", "places", "places_starts", "frequencies", "occurrences"
    text, starts, places, of_partitions, *counts = (open_array(generation, each) for each in names)
    trained, (frequencies, occurrences) = Vocabulary(read_vocabulary(generation)), counts
    terms = SortedTerms(text, starts)
    return CollectionTerms(trained, terms, places, of_partitions, (frequencies, occurrences))
