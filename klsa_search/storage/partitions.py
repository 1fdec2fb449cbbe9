"""Partitions of an index: the file that names them, and the way of an ID to one of them.

<home>/<name>/PARTITIONS          names the folders in use, replaced atomically
<home>/<name>/PARTITIONS-000001   the same of another build, kept for a rollback
<home>/<name>/000001-0, ...       partitions of the first build, each an index of its own
<home>/<name>/000001-terms        terms that they have in common: see `storage.collection_terms`
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from klsa_search.collection.model import id_hash
from klsa_search.core.config import Settings
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.current import current_generation
from klsa_search.storage.files import read_regular, replace_file, sync, unreadable
from klsa_search.storage.manifest import Frozen, Manifest, read_manifest
from klsa_search.storage.names import FORMER_PARTITIONS, PARTITION, PARTITIONS
from klsa_search.storage.query_settings import read_settings

MAX_PARTITIONS: Final = 1_000

_TERMS: Final = "terms"
_BYTES: Final = 2**28
"""More than the file of an index has."""


Stamp = tuple[int, int, int]


class PartitionSet(Frozen):
    """The partitions in use.

    manifest  of all documents: files are those of the manifests of the partitions
    folders   of the partitions, by number
    length    quantised mean length of all documents of the build
    """

    manifest: Manifest
    folders: list[str]
    length: float

    @property
    def generation(self) -> str:
        """Return the name of the build."""
        return self.folders[0].partition("-")[0]

    @property
    def terms(self) -> str:
        """Return the name of the folder of their terms."""
        return f"{self.generation}-{_TERMS}"

    @property
    def all_folders(self) -> list[str]:
        """Return the names of the folders of the partitions and of their terms."""
        return [*self.folders, self.terms]

    def settings(self, path: Path) -> Settings:
        """Return the settings of the build of the index at a path, with later changes."""
        return read_settings(path, self.generation, self.manifest.checked_settings())


def is_partitioned(path: Path) -> bool:
    """Return whether an index has partitions. Cost: 2 µs."""
    return (path / PARTITIONS).is_file()


def require_index(path: Path) -> None:
    """Raise IndexNotFound or IndexDamaged unless there is an index at a path."""
    if not is_partitioned(path):
        current_generation(path)


def stamp_of(path: Path) -> Stamp | None:
    """Return a value that changes when the partitions of an index do; None if it has none.

    Cost: 2 µs.
    """
    try:
        file = (path / PARTITIONS).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return file.st_ino, file.st_size, file.st_mtime_ns


def read_partitions(path: Path, generation: str | None = None) -> PartitionSet:
    """Read the file of an index; IndexDamaged if it is damaged.

    generation  name of a build that is kept for a rollback, instead of the one in use
    """
    file = path / PARTITIONS if generation is None else former_file(path, generation)
    try:
        checksum, _, content = read_regular(file, _BYTES).partition(b"\n")
        if checksum != _checksum(content):
            raise ValueError("it has changed since it was written")
        partition_set = PartitionSet.model_validate_json(content)
    except (OSError, ValueError, ValidationError) as error:
        step = "restore a backup of the index, or build it again"
        raise unreadable(file, error, step) from error
    if not all(map(PARTITION.fullmatch, partition_set.folders)):
        raise IndexDamaged(f"`{file}` names folders that are not partitions; build it again")
    return partition_set


def manifest_of_partitions(path: Path) -> Manifest:
    """Return the manifest of all documents, with the present settings and all files."""
    partition_set = read_partitions(path)
    generations = [current_generation(path / name) for name in partition_set.all_folders]
    manifest = with_files(
        path,
        partition_set.manifest,
        {generation: read_manifest(generation) for generation in generations},
    )
    settings = partition_set.settings(path).model_dump(mode="json")
    return manifest.model_copy(update={"settings": settings})


def generations_of(path: Path, partition_set: PartitionSet) -> list[Path]:
    """Return the folders of the generations in use of the partitions, by number.

    IndexDamaged if one is missing, or has documents of another partition, as after its folder was
    exchanged with that of another. Cost: reading a document of each.
    """
    from klsa_search.storage.documents import DocumentReader

    generations = [current_generation(path / name) for name in partition_set.folders]
    for number, generation in enumerate(generations):
        if not read_manifest(generation).counts.documents:
            continue
        (id_,) = DocumentReader.open(generation).ids([0])
        right = partition_of(id_, len(generations))
        if right != number:
            raise IndexDamaged(
                f"`{generation.parent}` has the documents of partition {right}, not of {number}; "
                "undo the exchange of folders, or restore a backup of the index"
            )
    return generations


def with_files(path: Path, all_manifest: Manifest, manifests: Mapping[Path, Manifest]) -> Manifest:
    """Return a manifest of all documents with the files of all partitions.

    path       folder of the index, to which the names of files are relative
    manifests  of the partitions and of their terms, by the folders of their generations
    """
    files = {
        (generation / name).relative_to(path).as_posix(): entry
        for generation, manifest in manifests.items()
        for name, entry in manifest.files.items()
    }
    return all_manifest.model_copy(update={"files": files})


def parts_of(path: Path) -> list[Path]:
    """Return the folders of the partitions of an index in use; its own if it has one partition."""
    if not is_partitioned(path):
        return [path]
    return [path / name for name in read_partitions(path).folders]


def terms_folder(partition: Path) -> Path:
    """Return the folder of the terms that belong to the folder of a partition."""
    build, _, _ = partition.name.partition("-")
    return partition.with_name(f"{build}-{_TERMS}")


def terms_generation(partition: Path) -> Path:
    """Return the generation of the terms that belong to the folder of a partition; IndexDamaged."""
    return current_generation(terms_folder(partition))


def number_of_partition(partition: Path) -> int:
    """Return the number of a partition from its folder."""
    return int(partition.name.partition("-")[2])


def write_partitions(path: Path, partition_set: PartitionSet) -> None:
    """Replace the file of an index that is locked, durably."""
    _write(path / PARTITIONS, partition_set)


def former_file(path: Path, generation: str) -> Path:
    """Return the file of a build of partitions that is kept for a rollback."""
    return path / f"{PARTITIONS}-{generation}"


def former_builds(path: Path) -> list[str]:
    """Return the names of the builds of partitions that are kept for a rollback, oldest first."""
    if not path.is_dir():
        return []
    names = [entry.name for entry in path.iterdir() if FORMER_PARTITIONS.fullmatch(entry.name)]
    return sorted(name.partition("-")[2] for name in names)


def keep_partitions(path: Path) -> None:
    """Copy the file of the partitions in use, for a rollback; the index is locked."""
    partition_set = read_partitions(path)
    _write(former_file(path, partition_set.generation), partition_set)


def retire_partitions(path: Path) -> str:
    """Put the partitions out of use in one step, kept for a rollback; return their build.

    The generation that CURRENT names is in use then. The index is locked.
    """
    partition_set = read_partitions(path)
    os.replace(path / PARTITIONS, former_file(path, partition_set.generation))
    sync(path)
    return partition_set.generation


def restore_partitions(path: Path, generation: str) -> None:
    """Use the partitions of a former build, in one step; the index is locked."""
    os.replace(former_file(path, generation), path / PARTITIONS)
    sync(path)


def _write(file: Path, partition_set: PartitionSet) -> None:
    content = partition_set.model_dump_json(indent=1, exclude_defaults=True)
    try:
        replace_file(file, f"{_checksum(content.encode()).decode()}\n{content}")
    except IsADirectoryError:
        raise StoreError(
            f"`{file}` is a folder that does not belong to the index; move it away"
        ) from None


def _checksum(content: bytes) -> bytes:
    return b"sha256 " + sha256(content).hexdigest().encode()


def partition_of(id_: str, partitions: int) -> int:
    """Return the number of the partition of a document.

    >>> [partition_of(f"report-{number}", 4) for number in range(6)]
    [0, 2, 3, 0, 2, 1]
    """
    return (id_hash(id_) >> 32) % partitions


def build_in_use(path: Path) -> tuple[str, Manifest]:
    """Return the name of the build in use of an index, and its manifest, of all partitions."""
    if is_partitioned(path):
        partition_set = read_partitions(path)
        return partition_set.generation, partition_set.manifest
    generation = current_generation(path)
    return generation.name, read_manifest(generation)


def generations_in_use(path: Path) -> list[Path]:
    """Return the generation in use of an index, or those of its partitions and their terms."""
    if not is_partitioned(path):
        return [current_generation(path)]
    return [current_generation(path / name) for name in read_partitions(path).all_folders]
