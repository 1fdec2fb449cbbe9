"""The terms that the partitions of an index have in common, and their statistics at the build.

They have a folder next to the partitions, with a generation of its own but without documents, so
that checksums, backups and followers treat it as a partition:

    <home>/<name>/000001-terms/000001/

    vocabulary.txt            terms of the training
    terms, terms_starts       other terms of the build, sorted: see `SortedTerms`
    positions, positions_starts
                              positions of the terms of each partition in `terms`, by partition
    frequencies, occurrences  int64, in all partitions: of the training's terms, then of the others

A term of the build has one number in all partitions: first those of the training, then the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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

    trained  V terms of the training
    terms    T others
    positions   of the terms of each partition in `terms`, partition by partition
    starts   (partitions + 1,) of each partition in `positions`
    counts   document frequencies and occurrences in all partitions: (V + T,) each
    """

    trained: Vocabulary
    terms: SortedTerms
    positions: npt.NDArray[np.int32]
    starts: _Numbers
    counts: tuple[_Numbers, _Numbers]

    def positions_of(self, partition: int) -> npt.NDArray[np.int32]:
        """Return the positions of the terms of a partition that the training lacks, ascending."""
        return self.positions[self.starts[partition] : self.starts[partition + 1]]


def open_collection_terms(generation: Path) -> CollectionTerms:
    """Return the terms of an index in partitions; IndexDamaged. Cost: that of `trained`."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    array = partial(open_array, generation)
    return CollectionTerms(
        Vocabulary(read_vocabulary(generation)),
        SortedTerms(array("terms"), array("terms_starts")),
        array("positions"),
        array("positions_starts"),
        (array("frequencies"), array("occurrences")),
    )
