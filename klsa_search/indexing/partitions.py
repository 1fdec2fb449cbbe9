"""Build an index in partitions: a pass over the source, a training, two steps of each partition.

1. Documents are divided by the hash of their IDs and kept in a work folder.
2. The training computes what all partitions share, from all documents or a sample.
3. Each partition is read and weighed, in a process of its own (`partition_tasks`).
4. Each then finds the neighbours of its documents in all partitions, and becomes an ordinary index.
5. The terms that the training lacks are numbered: see `storage.partitions`.
   If documents are long, steps 2 to 5 are taken for their passages, too.
6. The generation that has the partitions is used, in one step.
"""

from __future__ import annotations

import shutil
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from heapq import merge
from itertools import accumulate, chain, groupby, islice, repeat
from operator import attrgetter, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.languages import languages_of
from klsa_search.analysis.passages import cut
from klsa_search.collection.model import Collection
from klsa_search.core.config import Settings
from klsa_search.core.parallel import processors
from klsa_search.core.progress import DOCUMENTS, Progress, of_passages
from klsa_search.errors import IndexDamaged, SettingsError
from klsa_search.indexing import checks
from klsa_search.indexing.estimate import Size, divides, documents_within
from klsa_search.indexing.generation_builder import (
    Built,
    PartitionWorkers,
    manifest_of,
    refuse_unused_texts,
    spectrum_entry,
    write_documents,
    write_generation,
)
from klsa_search.indexing.partition_tasks import (
    TRAINING,
    DocumentSpool,
    PartitionTask,
    SpooledDocuments,
    spooled_batches,
    take_steps,
)
from klsa_search.indexing.reading import Contents, SourceBatches, StoredCollection
from klsa_search.indexing.text_sample import TextSample
from klsa_search.indexing.weighing import MOST, open_training, train
from klsa_search.kernels.bm25 import quantised_length
from klsa_search.kernels.postings import postings_of_arrays
from klsa_search.search.index import Index
from klsa_search.search.parts.open_parts import OpenParts
from klsa_search.search.parts.reader import Reader
from klsa_search.search.parts.reading import added_spaces
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.storage.arrays import (
    ArrayWriter,
    open_array,
    read_vocabulary,
    vocabulary_lines,
    write_arrays,
    write_vocabulary,
)
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import current_generation, step_for
from klsa_search.storage.generations import commit, describe_files, new_generation, sync_files
from klsa_search.storage.manifest import Manifest, SpectrumEntry, read_manifest
from klsa_search.storage.names import MANIFEST, PASSAGES, SCRATCH
from klsa_search.storage.partitions import (
    MAX_PARTITIONS,
    PartitionSet,
    generations_in_use,
    partition_of,
    partition_paths,
    write_partitions,
)


class Division(NamedTuple):
    """How an index is divided.

    partitions  their number
    workers     number of processes that build partitions at the same time, or what calls them
    """

    partitions: int
    workers: int | PartitionWorkers


def refuse_partitions(partitions: int) -> None:
    """Raise SettingsError for a number of partitions outside the limits."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise SettingsError(
            f"partitions = {partitions} is not from 1 to {MAX_PARTITIONS:,}; give such a number",
            field="partitions",
        )


def number_of_workers(partitions: int, workers: int | None) -> int:
    """Return how many workers build partitions, by default one for each processor.

    SettingsError for less than one.
    """
    if workers is not None and workers < 1:
        raise SettingsError(
            f"workers = {workers} is not at least 1; give such a number, or leave it out",
            field="workers",
        )
    return min(partitions, workers or processors())


def refuse_unpartitioned(partitions: int, settings: Settings) -> None:
    """Raise SettingsError for settings, or a number, that partitions do not support."""
    refuse_partitions(partitions)
    if field := needs_eigenvectors(settings):
        raise SettingsError(
            f"partitions = {partitions}: {field} = {getattr(settings, field)} needs the "
            "eigenvectors of all documents, which partitions do not have; use the settings of the "
            "default preset, or one partition",
            field="partitions",
        )


def build_divided(
    path: Path,
    collection: Collection,
    chosen: Settings,
    division: Division,
    report: Progress,
    memory: int,
    *,
    replace: bool,
    replay: Callable[[Path], AbstractContextManager[None]] | None = None,
) -> Index:
    """Build the index at a path, in one partition or several, and open it.

    memory   limit of each process in bytes
    replace  see `build`
    replay   see `write_generation`
    """
    partitions, workers = division
    if replay is None:
        checks.refuse_other_division(path, partitions)
    if partitions > 1:
        refuse_unpartitioned(partitions, chosen)

    def write(generation: Path) -> Built:
        if partitions == 1:
            return write_documents(generation, collection, chosen, report, memory, replace=replace)
        work = generation / SCRATCH
        work.mkdir()
        contents, sizes = _route(collection, work, chosen, partitions, report)
        documents = sum(sizes["documents"])
        checks.refuse_to_shrink(path, documents, collection, replace=replace)
        for kind, of_kind in sizes.items():
            size = Size(sum(of_kind), contents.bytes)
            checks.refuse_beyond_memory(size, contents.settings, memory, partitions, kind=kind)
        checks.require_fields(collection, contents.settings, contents.fields, documents)
        built = _write(generation, collection, contents, sizes, workers, report, memory)
        shutil.rmtree(work)
        return built

    write_generation(path, collection, write, report, replace=replace, replay=replay)
    return Index(Reader(OpenParts(path)))


_Sizes = dict[Literal["documents", "passages"], list[int]]
"""Number of documents of each partition, and of passages if documents are divided."""


def _route(
    collection: Collection, work: Path, chosen: Settings, partitions: int, report: Progress
) -> tuple[Contents, _Sizes]:
    """Write the documents of a source to a file for each partition."""
    source, done, passages = SourceBatches(collection, chosen, TextSample(chosen)), 0, 0
    is_whole, words = chosen.passages == "off", chosen.passage_words
    with ExitStack() as stack:
        parts = [DocumentSpool(work / str(number)) for number in range(partitions)]
        for part in parts:
            stack.enter_context(closing(part))
        for batch in source:
            counts = [] if is_whole else [len(cut(one.text, words)) for one in batch]
            *firsts, passages = accumulate(counts, initial=passages)
            ranges = list(map(range, firsts, [*firsts[1:], passages]))
            numbers = [partition_of(document.id, partitions) for document in batch]
            by_number = sorted(range(len(batch)), key=numbers.__getitem__)
            for number, positions in groupby(by_number, numbers.__getitem__):
                at = list(positions)
                parts[number].extend(
                    [batch[i] for i in at],
                    [done + i for i in at],
                    [ranges[i] for i in at if ranges],
                )
            done += len(batch)
            report(DOCUMENTS, done, source.extent.documents(done))
    report(DOCUMENTS, done, done)
    columns = work / "columns"
    columns.mkdir()

    def metadata() -> Iterator[list[Mapping[str, object]]]:
        for batch in chain.from_iterable(spooled_batches(part.path) for part in parts):
            yield [document.metadata for document in batch]

    contents = source.finish(columns, metadata)
    # English without any: partitions have even less text to tell the language by.
    names = ",".join(languages_of(contents.settings.language))
    settings = contents.settings.model_copy(update={"language": names})
    sizes: _Sizes = {"documents": [len(part.ordinals) for part in parts]}
    if divides(settings, done, passages):
        sizes["passages"] = [len(part.passages) for part in parts]
    return contents._replace(settings=settings), sizes


def _write(
    generation: Path,
    collection: Collection,
    contents: Contents,
    sizes: _Sizes,
    workers: int | PartitionWorkers,
    report: Progress,
    memory: int,
) -> Built:
    """Build the partitions of a generation whose documents are in its work folder."""
    started = time.monotonic()
    work = generation / SCRATCH
    settings, of_documents = contents.settings, sizes["documents"]
    *folders, terms_folder = partition_paths(generation, len(of_documents))
    counts = {"documents": sum(of_documents), "terms": 0, "tokens": 0, "non_zeros": 0}
    built = Built(contents, counts, {})
    manifest = manifest_of(collection, built, started, {})
    types = {name: column.type for name, column in contents.fields.columns.items()}
    stored = collection if isinstance(collection, StoredCollection) else None
    fingerprints = {} if stored is None else stored.fingerprints

    def tasks_of(documents: SpooledDocuments, report: Progress) -> list[PartitionTask]:
        entry = _train(documents, contents.bytes, memory, report)
        return [
            PartitionTask(folder, number, documents, entry, memory, fingerprints)
            for number, folder in enumerate(folders)
        ]

    documents = SpooledDocuments(work, None, work, of_documents, manifest, types)
    tasks = tasks_of(documents, report)
    if not len(open_training(work / TRAINING, settings).trained.frequencies):
        refuse_unused_texts(collection)
    if "passages" in sizes:
        passages = documents._replace(
            words=settings.passage_words,
            work=work / PASSAGES,
            sizes=sizes["passages"],
        )
        pairs = zip(tasks, tasks_of(passages, of_passages(report)), strict=True)
        tasks = [task._replace(passages=task_of_passages) for task, task_of_passages in pairs]
    take_steps(tasks, workers, report)
    generations = list(map(current_generation, folders))
    combined = _combined(built._replace(spectra={"bm25": tasks[0].spectrum}), generations)
    terms = _write_collection_terms(
        terms_folder, generations, manifest_of(collection, combined, started, {})
    )
    partition_set = PartitionSet(count=len(folders), length=_mean_length(generations))
    if "passages" in sizes:
        length = _mean_length([part / PASSAGES for part in generations])
        partition_set = partition_set.model_copy(update={"passage_length": length})
    write_partitions(generation, partition_set)
    return combined._replace(counts={**combined.counts, "terms": terms})


def _train(
    documents: SpooledDocuments, text_bytes: int, memory: int, report: Progress
) -> SpectrumEntry:
    """Write the training of documents, or of passages, to their work folder.

    text_bytes  of all documents
    """
    size, folder = sum(documents.sizes), documents.work / TRAINING
    within = documents_within(Size(size, text_bytes), memory)
    sample = documents.sample(min(1, min(MOST, within) / max(size, 1)))
    folder.mkdir()
    settings = documents.manifest.checked_settings()
    return spectrum_entry(train(folder, sample, settings, report, memory=memory))


def _combined(built: Built, generations: Sequence[Path]) -> Built:
    manifests = list(map(read_manifest, generations))
    counts = [part.counts for part in manifests]
    totals = {
        "documents": sum(count.documents for count in counts),
        "terms": 0,
        "tokens": sum(count.tokens for count in counts),
        "non_zeros": sum(count.non_zeros for count in counts),
    }
    if manifests[0].has_passages:
        totals["passages"] = sum(count.passages or 0 for count in counts)
    spaces = added_spaces(space for part in manifests for space in part.vectors)
    vectors = sorted(spaces, key=attrgetter("name"))
    return built._replace(counts=totals, vectors=vectors)


def _mean_length(generations: Sequence[Path]) -> float:
    lengths = [open_array(generation, "lengths") for generation in generations]
    words, documents = sum(int(part.sum(dtype="i8")) for part in lengths), sum(map(len, lengths))
    return quantised_length(words / documents if words else 1.0)


_BLOCK: Final = 100_000
"""Terms that are written at once."""


def _write_collection_terms(folder: Path, partitions: Sequence[Path], manifest: Manifest) -> int:
    """Write the terms of the partitions of a build to a folder, and return their number.

    partitions  their generations, by number
    manifest    of all documents
    Cost: 2 µs for each other term in each partition, and their positions in memory.
    """
    with new_generation(folder) as generation:
        _write_terms(partitions, manifest, generation)
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
        _write_terms(partitions, manifest, Path(folder))
        if describe_files(Path(folder)) != manifest.files:
            raise IndexDamaged(
                f"`{generation}` does not match the terms of the partitions; "
                f"{step_for(generation / MANIFEST)}"
            )


def _write_terms(generations: Sequence[Path], manifest: Manifest, folder: Path) -> None:
    """Write the files of the terms to a folder.

    generations  of the partitions
    manifest     of all documents
    """
    k1 = manifest.checked_settings().k1
    _write_terms_of(generations, k1, folder)
    if manifest.has_passages:
        (folder / PASSAGES).mkdir()
        passages = [generation / PASSAGES for generation in generations]
        _write_terms_of(passages, k1, folder / PASSAGES)


def _write_terms_of(generations: Sequence[Path], k1: float, folder: Path) -> None:
    """Write the files of the terms of documents, or of passages, to a folder."""
    trained = len(open_array(generations[0], "trained_frequencies"))
    write_vocabulary(folder, read_vocabulary(generations[0])[:trained])
    positions = _merge_terms(
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


def _merge_terms(
    vocabularies: Sequence[Iterator[bytes]], folder: Path
) -> list[npt.NDArray[np.int32]]:
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
