"""Write the terms of an index in partitions when all are built: see `storage.collection_terms`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.errors import IndexDamaged
from klsa_search.kernels.postings import postings_of_arrays
from klsa_search.storage.arrays import (
    ArrayWriter,
    open_array,
    read_vocabulary,
    vocabulary_lines,
    write_arrays,
    write_vocabulary,
)
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import step_for
from klsa_search.storage.generations import commit, describe_files, new_generation, sync_files
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import MANIFEST
from klsa_search.storage.partitions import generations_in_use, terms_name

_BLOCK: Final = 100_000
"""Terms that are written at once."""


def write_collection_terms(build: Path, partitions: Sequence[Path], manifest: Manifest) -> int:
    """Write the terms of the partitions of a build, and return their number.

    build       generation that has the partitions
    partitions  their generations, by number
    manifest    of all documents
    Cost: 2 µs for each other term in each partition, and their positions in memory.
    """
    with new_generation(build.with_name(terms_name(build.name))) as generation:
        _write(partitions, manifest, generation)
        terms = len(open_array(generation, "frequencies"))
        counts = manifest.counts.model_copy(update={"terms": terms})
        files = describe_files(generation)
        stored = manifest.model_copy(update={"counts": counts, "files": files})
        sync_files(generation)
        commit(generation, stored)
    note_checked(generation, stored)
    return terms


def verify_collection_terms(path: Path) -> None:
    """Raise IndexDamaged unless the terms of an index are those that its partitions give again."""
    _, *partitions, generation = generations_in_use(path)
    manifest = read_manifest(generation)
    with TemporaryDirectory(prefix="klsa-verify-") as folder:
        _write(partitions, manifest, Path(folder))
        if describe_files(Path(folder)) != manifest.files:
            raise IndexDamaged(
                f"`{generation}` does not match the terms of the partitions; "
                f"{step_for(generation / MANIFEST)}"
            )


def _write(generations: Sequence[Path], manifest: Manifest, folder: Path) -> None:
    """Write the files of the terms to a folder.

    generations  of the partitions
    manifest     of all documents
    """
    k1 = manifest.checked_settings().k1
    trained = len(open_array(generations[0], "trained_frequencies"))
    write_vocabulary(folder, read_vocabulary(generations[0])[:trained])
    positions = _merge(
        [islice(vocabulary_lines(generation_), trained, None) for generation_ in generations],
        folder,
    )
    terms = len(open_array(folder, "terms_starts")) - 1
    frequencies, occurrences = np.zeros((2, trained + terms), np.int64)
    for generation, term_numbers in zip(generations, positions, strict=True):
        postings = postings_of_arrays(partial(open_array, generation), k1)
        numbers = np.concatenate((np.arange(trained), trained + term_numbers))
        frequencies[numbers] += postings.frequencies
        occurrences[numbers] += postings.occurrences
    arrays = {
        "positions": np.concatenate(positions),
        "positions_starts": np.cumsum([0, *map(len, positions)]),
        "frequencies": frequencies,
        "occurrences": occurrences,
    }
    write_arrays(folder, arrays)


def _merge(vocabularies: Sequence[Iterator[bytes]], folder: Path) -> list[npt.NDArray[np.int32]]:
    """Write the sorted terms of vocabularies, each term once; return the positions of each."""
    positions = [array("i") for _ in vocabularies]
    marked = (zip(terms, repeat(number)) for number, terms in enumerate(vocabularies))
    groups = groupby(merge(*marked), key=itemgetter(0))
    text, starts = ArrayWriter(folder, "terms", "u1"), ArrayWriter(folder, "terms_starts", "i8")
    end = first = 0
    with text, starts:
        starts.append(np.zeros(1, np.int64))
        while block := [
            (term, [number for _, number in group]) for term, group in islice(groups, _BLOCK)
        ]:
            for position, (_, numbers) in enumerate(block, first):
                for number in numbers:
                    positions[number].append(position)
            first += len(block)
            lines = b"".join(b"%b\n" % term for term, _ in block)
            text.append(lines)
            starts.append(end + np.cumsum([len(term) + 1 for term, _ in block]))
            end += len(lines)
    return [np.frombuffer(numbers, np.int32) for numbers in positions]
