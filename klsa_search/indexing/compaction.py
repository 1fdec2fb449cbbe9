"""Compaction: make one segment of an index and what was written since, without a refit.

    compact(path)    the live documents become a new generation, under the statistics of the build

Statistics, model and features stay those of the training: the documents that the last build or
refit learned from. Everything of a live document is copied, and deleted ones are left out. Postings
are counted from the forward index, saturated by the mean length of the live documents, so BM25 has
the same bits before and after. A row of D keeps its entries; those of deleted documents go, and as
K is symmetric, it gets those of later documents that have it among their neighbours, up to the
number of entries of a row. So no text is analysed, and no kernel or eigenvector is computed.

Documents keep their order: those of the training come first, then later ones. It is stored which
of these have the words of one of the training, as only other fields were written again
(`Manifest.trained`), so drift still counts from the training. Terms that no document contains any
more keep their numbers, on which features and codes rest, but not their names.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocumentMask, Integers, Numbers, starts_of
from klsa_search.core.installation import __version__
from klsa_search.core.progress import (
    DOCUMENTS,
    EXPANSION,
    FILES,
    POSTINGS,
    Progress,
    of_passages,
    open_progress,
)
from klsa_search.delta.folding import packed
from klsa_search.delta.statistics import (
    TRAINED,
    TrainedStatistics,
    trained_documents,
    training_of,
)
from klsa_search.errors import PartitionsUnsupported
from klsa_search.indexing.generation_builder import build_entry, publish
from klsa_search.indexing.replay import refuse_rebuilt, replayed
from klsa_search.kernels.bm25 import length_norms, live_length
from klsa_search.kernels.postings import Postings, postings_arrays
from klsa_search.lowrank.sparse_expansion import LEVELS, SegmentedExpansion
from klsa_search.search.index import Index, open_index
from klsa_search.search.parts.reading import space_entries
from klsa_search.search.state.state import State
from klsa_search.storage.arrays import ArrayWriter, write_arrays, write_lists, write_vocabulary
from klsa_search.storage.columns.column import ColumnArrays, ColumnFiles
from klsa_search.storage.columns.writer import are_codes
from klsa_search.storage.documents import write_live_documents
from klsa_search.storage.files import write_fresh
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.generations import describe_files, new_generation
from klsa_search.storage.manifest import (
    FORMAT_VERSION,
    Counts,
    FieldsEntry,
    FileEntry,
    Manifest,
    plugins_of,
)
from klsa_search.storage.names import MANIFEST, PASSAGES
from klsa_search.storage.passages import PASSAGE_DOCUMENTS
from klsa_search.storage.vectors import write_vectors

_ROWS: Final = 2**15
"""Documents whose rows are merged at once."""

_COPIED: Final = ("feature_pairs", "eigenvalues", "expansion_mean", "expansion_terms")
"""Arrays of the training."""


def compact(path: str | Path, *, progress: Progress | bool | None = None) -> Index:
    """Merge what was written to the index in the folder `path` since its build, and open it.

    Deleted documents are removed, and later ones are read from the files of the new generation like
    those of the build, so opening, memory and disk are as after a build. Statistics stay those of
    the last build or refit, which `index.drift` counts from. Scores of BM25 do not change. Those of
    the default ranking do if a deleted document was among the neighbours of a document, or a later
    one is now. Searches and writes continue meanwhile; concurrent writes are replayed. The
    generation before is kept, with its log, for `rollback`. An index without later writes is opened
    as it is.

    Cost: opening and copying the index, and counting its postings. Memory: 12 bytes a posting, and
    that of the open index. Raise IndexNotFound, IndexDamaged; PartitionsUnsupported for an index in
    partitions; StoreError during a build.

    >>> index.delete(["copy"])
    1
    >>> compact("index/reports")
    <Index reports generation 000002: 5 documents>
    """
    started = time.monotonic()
    with open_index(path) as index, open_progress(progress) as report:
        before = index.snapshot()
        if len(before.partitions) > 1:
            raise PartitionsUnsupported(
                f"index `{index.name}` has partitions, whose documents refer to each other by "
                f"number; `klsa-index refit {index.name}` merges its later documents"
            )
        state = before.partitions[0].state()
        if state.snapshot.live is None and len(state.documents.parts) == 1:
            return open_index(path)
        refuse_rebuilt(before)
        replay = partial(replayed, before, before.settings, ())
        with new_generation(index.path.parent, allow_writes=True) as generation:
            manifest = _write(state, generation, report, started)
            report(FILES, 0, None)
            publish(generation, _with_files(manifest, describe_files(generation)), replay)
    return open_index(path)


def _write(state: State, folder: Path, report: Progress, started: float) -> Manifest:
    """Write the files of the live documents of a state; return the manifest, without files."""
    info, snapshot = state.info, state.snapshot
    live = snapshot.live_docs()
    numbers = np.where(live, np.cumsum(live) - 1, -1)  # new doc ids
    report(DOCUMENTS, 0, None)
    write_live_documents(folder, state.documents, live)
    fields = _write_fields(folder, state, live)
    write_vectors(folder, snapshot.vectors, live, numbers)
    spaces = space_entries(state)
    training = _write_training(folder, state)
    report(POSTINGS, 0, None)
    postings = _write_words(folder, state, live, training)
    report(EXPANSION, 0, None)
    _write_rows(folder, snapshot.sparse_expansion, numbers)
    passages = None
    if state.passages is not None:
        inner = folder / PASSAGES
        inner.mkdir()
        of_inner = _write(state.passages.state, inner, of_passages(report), started)
        live_passages = state.passages.state.snapshot.live_docs()
        documents = numbers[state.passages.document_of[live_passages]]
        write_arrays(inner, {PASSAGE_DOCUMENTS: documents.astype(np.int32)})
        of_inner = _with_files(of_inner, describe_files(inner))
        write_fresh(inner / MANIFEST, of_inner.as_text())
        passages = of_inner.counts.documents
    trained = info.trained
    if trained is None:
        trained = trained_documents(info.path, info.manifest)
    trained = trained[live]
    count = int(np.count_nonzero(trained))
    if not trained[:count].all():
        write_arrays(folder, {TRAINED: trained})
    counts = Counts(
        documents=postings.size,
        terms=int(np.count_nonzero(postings.frequencies)),
        tokens=int(postings.occurrences.sum()),
        non_zeros=len(postings.entries),
        skipped=info.manifest.counts.skipped,
        passages=passages,
    )
    changes = {
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "settings": info.settings.model_dump(mode="json"),
        "counts": counts,
        "build": build_entry(started),
        "fields": fields,
        "vectors": list(spaces),
        "plugins": plugins_of(info.settings),
        "trained": count,
    }
    return info.manifest.model_copy(update=changes)


def _with_files(manifest: Manifest, files: dict[str, FileEntry]) -> Manifest:
    """Return a manifest with files, and a fingerprint of what it was made of."""
    identity = f"{manifest.fingerprint}:{sorted((name, e.sha256) for name, e in files.items())}"
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return manifest.model_copy(update={"files": files, "fingerprint": fingerprint})


def _write_fields(folder: Path, state: State, live: DocumentMask) -> FieldsEntry:
    columns = {}
    with ExitStack() as stack:
        files = ColumnFiles(folder, stack)
        for name, field in sorted(state.fields.items()):
            values, starts = field.values, field.starts
            if starts is None:
                values = values[live]
            else:  # deleted documents have no values
                starts = starts_of(np.diff(starts)[live])
            missing = int(np.count_nonzero(live & ~field.present()))
            arrays = ColumnArrays(values, starts, field.texts)
            entry = files.write(field.type, arrays, missing, field.type_mismatches)
            codes = are_codes(name, field.type, values)
            columns[name] = entry.model_copy(update={"codes": codes})
    unindexed = dict(state.fields.unfilterable)
    return FieldsEntry(columns=columns, others=unindexed, more=state.info.manifest.fields.more)


def _write_training(folder: Path, state: State) -> TrainedStatistics:
    snapshot, generation = state.snapshot, state.info.path
    built = snapshot.query_kernel.postings.parts[0].postings
    common = snapshot.common[snapshot.common < len(built.frequencies)]
    training = training_of(generation, built, common, snapshot.lengths[: built.size])
    write_arrays(folder, training.arrays())
    for name in _COPIED:
        shutil.copyfile(generation / f"{name}.npy", folder / f"{name}.npy")
    return training


def _write_words(
    folder: Path, state: State, live: DocumentMask, training: TrainedStatistics
) -> Postings:
    snapshot, settings = state.snapshot, state.info.settings
    forward, lengths = snapshot.forward, snapshot.lengths[live]
    write_lists(folder, ("forward_codes", "forward_starts"), forward.parts, live)
    write_arrays(folder, {"forward_ranks": forward.ranks, "lengths": lengths})
    counts = Forward.open(folder, settings.searched_fields).rows(np.arange(len(lengths)))
    mean = int(lengths.sum(dtype=np.int64)) / max(len(lengths), 1)
    average = live_length(training.length, mean)
    norms = length_norms(lengths, average, k1=settings.k1, b=settings.b)
    postings = Postings.of(counts, norms, settings.k1)
    write_arrays(folder, postings_arrays(postings))
    is_used = postings.frequencies > 0
    write_vocabulary(
        folder, list(_names(snapshot.vocabulary.terms, is_used, len(training.frequencies)))
    )
    return postings


def _names(terms: Iterable[str], is_used: npt.NDArray[np.bool_], trained: int) -> Iterator[str]:
    """Yield terms, with names that no text contains for those that are not used.

    Those of the training stay sorted and distinct; later ones stay distinct.
    """
    before = ""
    for number, (term, used) in enumerate(zip(terms, is_used.tolist(), strict=True)):
        if used:
            before = term
        yield term if used else f"{before if number < trained else ''}\0{number:010}"


class _Entries(NamedTuple):
    """Entries for rows of D: the row and the column of each, new doc ids, and K of the two."""

    rows: Numbers
    columns: Numbers
    values: npt.NDArray[np.float32]

    def at(self, chosen: slice | Integers | DocumentMask) -> _Entries:
        return _Entries(self.rows[chosen], self.columns[chosen], self.values[chosen])


def _write_rows(folder: Path, expansion: SegmentedExpansion, numbers: Numbers) -> None:
    """Write rows, features and coordinates of live documents.

    numbers  (N,) new doc ids, -1 for deleted documents
    """
    live = numbers >= 0
    segments = expansion.segments
    features = [(segment.features, segment.starts) for segment in segments]
    write_lists(folder, ("expansion_features", "expansion_starts"), features, live)
    ends = np.cumsum([len(segment.rows) for segment in segments]).tolist()
    later = _entries_of_later(expansion, numbers)
    coordinates = expansion.built.document_vectors.shape[1]
    with ExitStack() as stack:
        rows, scales, vectors = (
            stack.enter_context(ArrayWriter(folder, f"expansion_{name}", kind, columns))
            for name, kind, columns in (
                ("rows", np.uint32, expansion.entries),
                ("scales", np.float32, 2),
                ("document_vectors", np.int8, coordinates),
            )
        )
        for segment, end in zip(segments, ends, strict=True):
            first = end - len(segment.rows)
            for begin in range(first, end, _ROWS):
                chosen = np.flatnonzero(live[begin : min(begin + _ROWS, end)]) + begin - first
                if not len(chosen):
                    continue
                table, steps = _merged(
                    _renumbered(segment.rows[chosen], numbers),
                    segment.scales[chosen, 0],
                    _within(later, numbers[first + chosen[0]], numbers[first + chosen[-1]] + 1),
                )
                rows.append(table)
                scales.append(np.column_stack((steps, segment.scales[chosen, 1])))
                vectors.append(segment.document_vectors[chosen])


def _entries_of_later(expansion: SegmentedExpansion, new: Numbers) -> _Entries:
    """Return the entries that rows of later documents have for those of earlier ones, by row."""
    of_segments = []
    first = len(expansion.built.rows)
    for segment in expansion.segments[1:]:
        numbers = new[first : first + len(segment.rows)]
        first += len(segment.rows)
        levels = segment.rows & np.uint32(LEVELS)
        columns = new[segment.rows >> np.uint32(8)]
        documents, at = np.nonzero((levels > 0) & (columns >= 0) & (numbers >= 0)[:, None])
        values = levels[documents, at].astype(np.float32) * segment.scales[documents, 0]
        of_segments.append(_Entries(columns[documents, at], numbers[documents], values))
    entries = _Entries(*map(np.concatenate, zip(*of_segments, strict=True)))
    return entries.at(np.argsort(entries.rows, kind="stable"))


def _within(entries: _Entries, first: int, after: int) -> _Entries:
    """Return the entries of some rows, which are counted from the first."""
    begin, end = np.searchsorted(entries.rows, [first, after]).tolist()
    chosen = entries.at(slice(begin, end))
    return chosen._replace(rows=chosen.rows - first)


def _renumbered(rows: npt.NDArray[np.uint32], numbers: Numbers) -> npt.NDArray[np.uint32]:
    """Return packed rows with new doc ids, without deleted documents."""
    columns, levels = numbers[rows >> np.uint32(8)], rows & np.uint32(LEVELS)
    is_kept = (columns >= 0) & (levels > 0)
    table = np.where(is_kept, columns.astype(np.uint32) << np.uint32(8) | levels, np.uint32(0))
    has_gaps = (np.diff(is_kept.astype(np.int8), axis=1) > 0).any(axis=1)
    if has_gaps.any():
        order = np.argsort(~is_kept[has_gaps], axis=1, kind="stable")
        table[has_gaps] = np.take_along_axis(table[has_gaps], order, axis=1)
    return table


def _merged(
    table: npt.NDArray[np.uint32], steps: npt.NDArray[np.float32], later: _Entries
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """Return rows and their steps with the strongest of their entries and later ones."""
    width = table.shape[1]
    steps = steps.copy()
    weakest = (table[:, -1] & np.uint32(LEVELS)).astype(np.float32) * steps
    is_strong = later.values > weakest[later.rows]
    if not is_strong.any():
        return table, steps
    later = later.at(is_strong)
    changed = np.unique(later.rows)
    before = table[changed]
    levels = (before & np.uint32(LEVELS)).astype(np.float32)
    stored = np.nonzero(levels)
    rows = np.concatenate((stored[0], np.searchsorted(changed, later.rows)))
    columns = np.concatenate(((before >> np.uint32(8))[stored].astype(np.int64), later.columns))
    values = np.concatenate(((levels * steps[changed, None])[stored], later.values))
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
    rows, columns, values = (array[ranks < width] for array in (rows, columns, values))
    ranks = ranks[ranks < width]
    strongest = np.zeros((len(changed), width), np.float32)
    neighbours = np.zeros((len(changed), width), np.int32)
    strongest[rows, ranks], neighbours[rows, ranks] = values, columns
    table[changed], steps[changed] = packed(strongest, neighbours)
    return table, steps
