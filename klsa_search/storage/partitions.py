"""Partitions of an index: a generation that has them, and the way of an ID to one of them.

    <home>/<name>/000001/partitions.json   their number, with the manifest of all documents
    <home>/<name>/000001-0, ...            partitions, each an index of its own
    <home>/<name>/000001-terms/000001/     terms that they have in common: a generation without
                                           documents, so that backups treat it as a partition
        vocabulary.txt            terms of the training
        terms, terms_starts       other terms of the build, sorted, each with a line end
        positions, positions_starts
                                  positions of the terms of each partition in `terms`, by partition
        frequencies, occurrences  int64, in all partitions: of the training's terms, then of the
                                  others
        passages/                 the same of passages, if documents are divided

A term of the build has one number in all partitions: first those of the training, then the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from klsa_search.collection.model import id_hash
from klsa_search.errors import IndexDamaged
from klsa_search.storage.checksums import check_once, check_sizes
from klsa_search.storage.current import (
    current_build,
    current_generation,
    has_partitions,
    last_resort,
)
from klsa_search.storage.directories import build_of, partition_folders
from klsa_search.storage.files import read_regular, unreadable, write_fresh
from klsa_search.storage.manifest import Frozen, Manifest, current_manifest, read_manifest
from klsa_search.storage.names import CURRENT, PARTITIONS, PASSAGES, index_of

if TYPE_CHECKING:  # NumPy takes 0.1 s, and commands load this
    import numpy as np
    import numpy.typing as npt

    from klsa_search.core.array_types import Numbers
    from klsa_search.kernels.vocabulary import Vocabulary

MAX_PARTITIONS: Final = 1_000


class PartitionSet(Frozen):
    """The partitions of a build: content of `partitions.json`.

    count                   their number
    length, passage_length  quantised mean length of all documents of the build, and of passages
    """

    count: int
    length: float
    passage_length: float | None = None

    @property
    def lengths(self) -> tuple[float, ...]:
        """Return the mean length of documents, and that of their passages if there are any."""
        return (self.length,) if self.passage_length is None else (self.length, self.passage_length)


@dataclass(frozen=True, eq=False)
class CollectionTerms:
    """The terms of all partitions of a build, and their statistics.

    vocabulary  V terms of the training, then T others
    trained_terms
                V
    positions   of the terms of each partition among the T, partition by partition
    starts      (partitions + 1,) of each partition in `positions`
    counts      document frequencies and occurrences in all partitions: (V + T,) each
    passages    the terms of passages, if documents are divided
    """

    vocabulary: Vocabulary
    trained_terms: int
    positions: npt.NDArray[np.int32]
    starts: Numbers
    counts: tuple[Numbers, Numbers]
    passages: CollectionTerms | None = None

    def __len__(self) -> int:
        """Return V + T, the number of terms."""
        return len(self.vocabulary)

    def numbers_of(self, partition: int) -> Numbers:
        """Return the numbers of the terms of a partition, in the order of its files, ascending."""
        import numpy as np

        positions = self.positions[self.starts[partition] : self.starts[partition + 1]]
        return np.concatenate((np.arange(self.trained_terms), self.trained_terms + positions))


def partition_paths(generation: Path, count: int) -> list[Path]:
    """Return the folders of so many partitions of a generation, and last that of their terms."""
    return [generation.with_name(f"{generation.name}-{part}") for part in (*range(count), "terms")]


def is_partitioned(path: Path) -> bool:
    """Return whether an index has partitions; by folders if CURRENT is damaged. Cost: 20 µs."""
    try:
        return (path / CURRENT).exists() and has_partitions(current_build(path))
    except IndexDamaged:
        return bool(partition_folders(path))


def partitions_of(generation: Path) -> PartitionSet:
    """Return the partitions of a generation; IndexDamaged if their description is damaged."""
    file = generation / PARTITIONS
    try:
        return PartitionSet.model_validate_json(read_regular(file))
    except (OSError, ValidationError) as error:
        raise unreadable(file, error, last_resort(index_of(generation))) from error


def write_partitions(generation: Path, partition_set: PartitionSet) -> None:
    """Write that the documents of a new generation are in these partitions."""
    write_fresh(generation / PARTITIONS, partition_set.model_dump_json())


def with_files(path: Path, all_manifest: Manifest, manifests: Mapping[Path, Manifest]) -> Manifest:
    """Return a manifest of all documents with the files of all partitions.

    path       folder of the index, to which the names of files are relative
    manifests  of the partitions and of their terms, by the folders of their generations; none
               without partitions
    """
    if not manifests:
        return all_manifest
    files = {
        (generation / name).relative_to(path).as_posix(): entry
        for generation, manifest in manifests.items()
        for name, entry in manifest.files.items()
    }
    return all_manifest.model_copy(update={"files": files})


def terms_folder(partition: Path) -> Path:
    """Return the folder of the terms that belong to the folder of a partition."""
    return partition.with_name(f"{build_of(partition)}-terms")


def number_of_partition(partition: Path) -> int:
    """Return the number of a partition from its folder."""
    return int(partition.name.partition("-")[2])


def partition_of(id_: str, partitions: int) -> int:
    """Return the number of the partition of a document.

    >>> [partition_of(f"report-{number}", 4) for number in range(6)]
    [0, 2, 3, 0, 2, 1]
    """
    return (id_hash(id_) >> 32) % partitions


def documents_of(generation: Path) -> list[Path]:
    """Return the generations in use of the partitions of one, by number, or itself without any."""
    return list(map(current_generation, folders_of(generation)[:-1])) or [generation]


def folders_of(generation: Path) -> list[Path]:
    """Return the folders of the partitions of a generation, and of their terms; none without."""
    if not has_partitions(generation):
        return []
    return partition_paths(generation, partitions_of(generation).count)


def generations_of_build(generation: Path) -> list[Path]:
    """Return a generation, and then those in use of its partitions and of their terms, if any."""
    return [generation, *map(current_generation, folders_of(generation))]


def generations_in_use(path: Path) -> list[Path]:
    """Return the generation in use of an index, and those of its partitions and their terms."""
    return generations_of_build(current_build(path))


def manifest_in_use(path: Path) -> Manifest:
    """Return the manifest of the build in use, with the present settings and all files."""
    generation, *parts = generations_in_use(path)
    manifest = current_manifest(generation)
    return with_files(path, manifest, {part: read_manifest(part) for part in parts})


def open_collection_terms(generation: Path) -> CollectionTerms:
    """Return the terms of an index in partitions; IndexDamaged. Cost: that of `trained`."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_once(generation, manifest)
    passages = _terms_in(generation / PASSAGES) if manifest.has_passages else None
    return replace(_terms_in(generation), passages=passages)


def _terms_in(folder: Path) -> CollectionTerms:
    from klsa_search.core.array_types import SortedTexts
    from klsa_search.kernels.vocabulary import StoredVocabulary, Vocabulary
    from klsa_search.storage.arrays import open_array, read_vocabulary

    array, trained = partial(open_array, folder), Vocabulary(read_vocabulary(folder))
    terms = SortedTexts(array("terms"), array("terms_starts"), gap=1)
    return CollectionTerms(
        StoredVocabulary(trained, terms) if len(terms) else trained,
        len(trained),
        array("positions"),
        array("positions_starts"),
        (array("frequencies"), array("occurrences")),
    )
