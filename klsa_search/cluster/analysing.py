"""Analyse documents in parallel, and merge their IDs and terms.

IDs are sorted as UTF-8, which has the order of the texts. A step numbers the terms of its documents
as it meets them; the vocabulary merges the sorted terms of all pieces, with a table for each piece
from its numbers to those of the vocabulary.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.analysis.workers import TermNumbering
from klsa_search.cluster.work import StepResult, map_array, read_facts, write_facts
from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import all_texts
from klsa_search.core.config import Settings
from klsa_search.indexing.reading import build_batches
from klsa_search.kernels.counts import BLOCK, Block
from klsa_search.storage.arrays import VOCABULARY, ArrayWriter, read_header, write_arrays
from klsa_search.storage.documents import RECORDS, STARTS, IdWriter
from klsa_search.storage.records import Records


def write_ids(out: Path, ids: Sequence[str]) -> None:
    """Write the sorted IDs of a part, `ids.npy` and `ids_starts.npy`, and the place of each."""
    written = [each.encode() for each in ids]
    order = sorted(range(len(written)), key=written.__getitem__)
    arrays: dict[str, npt.NDArray[Any]] = {
        "ids": np.frombuffer(b"".join(written[place] for place in order), np.uint8),
        "ids_starts": np.cumsum([0, *(len(written[place]) for place in order)], dtype=np.int64),
        "ids_places": np.array(order, np.int64),
    }
    write_arrays(out, arrays)


def find_repeated(out: Path, parts: Sequence[StepResult]) -> None:
    """Step: find documents with the ID of an earlier one: (n, 2) part and place, ascending."""
    repeated = []
    before = None
    for id_, part, place in _merged(parts):
        if id_ == before:
            repeated.append((part, place))
        before = id_
    write_arrays(out, {"repeated": np.array(sorted(repeated), np.int64).reshape(-1, 2)})


def index_ids(out: Path, parts: Sequence[StepResult], repeated: StepResult | None) -> None:
    """Step: write `documents.db`, without repeated IDs. Memory: that of the merge."""
    gone = [left_out(repeated, number) for number in range(len(parts))]
    own = [
        read_facts(part)["documents"] - len(left) for part, left in zip(parts, gone, strict=True)
    ]
    firsts = np.concatenate(([0], np.cumsum(own, dtype=np.int64)))
    with IdWriter(out) as writer:
        before = None

        def rows() -> Iterator[tuple[str, int]]:
            nonlocal before
            for id_, part, place in _merged(parts):
                if id_ != before:
                    passed = int(np.searchsorted(gone[part], place)) if len(gone[part]) else 0
                    yield id_.decode(), int(firsts[part]) + place - passed
                before = id_

        writer.write(rows())


def left_out(repeated: StepResult | None, part: int) -> npt.NDArray[np.int64]:
    """Return the places in a part of documents that repeat an ID, ascending."""
    if repeated is None:
        return np.zeros(0, np.int64)
    found = map_array(repeated, "repeated")
    return np.asarray(found[found[:, 0] == part, 1])


def ids_at(part: StepResult, places: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield the IDs of documents at some places of a part."""
    if not len(places):
        return
    order = np.argsort(map_array(part, "ids_places"))
    content, starts = map_array(part, "ids"), map_array(part, "ids_starts")
    for at in order[places].tolist():
        yield content[starts[at] : starts[at + 1]].tobytes().decode()


def _merged(parts: Sequence[StepResult]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the IDs of all parts in order, with part and place; equal ones by place."""
    return heapq.merge(*(_ids_of(part, number) for number, part in enumerate(parts)))


def _ids_of(made: StepResult, part: int) -> Iterator[tuple[bytes, int, int]]:
    content = map_array(made, "ids").data
    starts, places = map_array(made, "ids_starts").data, map_array(made, "ids_places")
    for i, place in enumerate(places.data):
        yield bytes(content[starts[i] : starts[i + 1]]), part, place


_LEFT_OUT: Final = -1
_READ: Final = 2**22  # bytes of records at a time


def settings_of(settings: Mapping[str, Any]) -> Settings:
    """Return the settings in the arguments of a step, with the tokenizer that the build trusts."""
    return Settings.model_validate(with_trusted_tokenizer(settings))


def documents_of(records: StepResult, first: int, last: int) -> Iterator[Document]:
    """Yield documents [first, last) of the records.

    Reads some megabytes at a time, without a memory map, whose pages would stay in memory.
    """
    starts, path = map_array(records, STARTS), records.path / f"{RECORDS}.npy"
    with path.open("rb") as stream:
        _, _, head = read_header(stream)
        while first < last:
            after = int(np.searchsorted(starts, starts[first] + _READ, side="right")) - 1
            after = min(max(after, first + 1), last)
            begin, end = int(starts[first]), int(starts[after])
            stream.seek(head + begin)
            content = np.fromfile(stream, np.uint8, end - begin)
            read = Records(content, starts[first : after + 1] - begin, path)
            yield from map(read.document, range(after - first))
            first = after


def analyse(
    out: Path, records: StepResult, first: int, last: int, settings: Mapping[str, Any]
) -> None:
    """Step: analyse documents [first, last).

    words.npy    int32 term numbers of all parts; -1 for removed words
    lengths.npy  int32 numbers of words of each part
    terms.txt    distinct terms, sorted
    numbers.npy  number of each of these terms
    """
    chosen = settings_of(settings)
    numbering, fields = TermNumbering(Analyzer(chosen)), chosen.searched_fields
    met: list[str] = []
    lengths = [np.zeros(0, np.int32)]
    words = tokens = 0
    with ArrayWriter(out, "words", np.int32) as writer:
        for batch in build_batches(documents_of(records, first, last)):
            found = numbering.numbered(all_texts(batch, fields))
            numbers = np.frombuffer(found.numbers, np.int32)
            writer.append(numbers)
            lengths.append(np.array(found.lengths, np.int32))
            met += found.terms
            words += len(numbers)
            tokens += int(np.count_nonzero(numbers >= 0))
    order = sorted(range(len(met)), key=met.__getitem__)
    write_arrays(out, {"lengths": np.concatenate(lengths), "numbers": np.array(order, np.int32)})
    with (out / "terms.txt").open("x", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{met[number]}\n" for number in order)
    counts = {"documents": last - first, "words": words, "tokens": tokens}
    write_facts(out, **counts, parts=len(fields.names))


def merge_terms(out: Path, pieces: Sequence[StepResult], common: Sequence[str]) -> None:
    """Step: merge the terms of all pieces into the vocabulary, and find the common terms.

    terms-<i>.npy  number of each term of piece i, in the order of its terms
    Memory: constant.
    """
    apart = frozenset(common)
    found = []
    V = 0
    with ExitStack() as stack:
        vocabulary = stack.enter_context(
            (out / VOCABULARY).open("x", encoding="utf-8", newline="\n")
        )
        tables = [
            stack.enter_context(_Buffered(ArrayWriter(out, f"terms-{i}", np.int32)))
            for i in range(len(pieces))
        ]
        files = [
            stack.enter_context((piece.path / "terms.txt").open(encoding="utf-8", newline="\n"))
            for piece in pieces
        ]
        named = (_lines_of(file, i) for i, file in enumerate(files))
        for V, (term, holders) in enumerate(groupby(heapq.merge(*named), itemgetter(0)), start=1):
            vocabulary.write(f"{term}\n")
            if term in apart:
                found.append(V - 1)
            for _, piece in holders:
                tables[piece].append(V - 1)
    write_arrays(out, {"common": np.array(found, np.int64)})
    write_facts(out, terms=V)


def blocks_of(piece: StepResult, vocabulary: StepResult, number: int) -> Iterator[Block]:
    """Yield the documents of a piece with terms numbered as in the vocabulary, by blocks.

    number  number of the piece in the merge
    """
    own = map_array(piece, "numbers")
    places = np.full(len(own) + 1, _LEFT_OUT, np.int32)
    places[own] = map_array(vocabulary, f"terms-{number}")
    words, lengths = map_array(piece, "words"), map_array(piece, "lengths")
    parts = int(read_facts(piece)["parts"])
    ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))[::parts]
    first, N = 0, len(lengths) // parts
    while first < N:
        last = int(np.searchsorted(ends, ends[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), N)
        yield Block(
            places[words[ends[first] : ends[last]]],
            np.array(lengths[parts * first : parts * last]),
            np.full(last - first, parts, np.int32),
        )
        first = last


def terms_of(vocabulary: StepResult) -> int:
    """Return V, the number of terms of a merged vocabulary."""
    return int(read_facts(vocabulary)["terms"])


def _lines_of(file: Iterable[str], piece: int) -> Iterator[tuple[str, int]]:
    return ((line[:-1], piece) for line in file)


class _Buffered:
    """Buffers single numbers for an `ArrayWriter`."""

    def __init__(self, writer: ArrayWriter) -> None:
        self._writer = writer
        self._held: list[int] = []

    def __enter__(self) -> _Buffered:
        return self

    def append(self, number: int) -> None:
        self._held.append(number)
        if len(self._held) == 2**12:
            self._flush()

    def __exit__(self, *failure: object) -> None:
        self._flush()
        self._writer.__exit__(*failure)

    def _flush(self) -> None:
        piece: npt.NDArray[np.int32] = np.array(self._held, np.int32)
        self._writer.append(piece)
        self._held.clear()
