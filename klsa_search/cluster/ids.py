"""Ids: those of each part in order, those of all merged, and where each document is.

Parts have their ids as bytes of UTF-8, whose order is that of the texts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.files import mapped, noted
from klsa_search.cluster.work import Made
from klsa_search.store.arrays import write_arrays
from klsa_search.store.documents import IdWriter


def write_ids(out: Path, ids: Sequence[str]) -> None:
    """Write the ids of a part: `ids.npy` and `ids_starts.npy` in order, the place of each."""
    written = [each.encode() for each in ids]
    order = sorted(range(len(written)), key=written.__getitem__)
    arrays: dict[str, npt.NDArray[Any]] = {
        "ids": np.frombuffer(b"".join(written[place] for place in order), np.uint8),
        "ids_starts": np.cumsum([0, *(len(written[place]) for place in order)], dtype=np.int64),
        "ids_places": np.array(order, np.int64),
    }
    write_arrays(out, arrays)


def find_repeated(out: Path, parts: Sequence[Made]) -> None:
    """Step: find documents whose id an earlier one has: (n, 2) part and place in it, ascending."""
    repeated = []
    before = None
    for id_, part, place in _merged(parts):
        if id_ == before:
            repeated.append((part, place))
        before = id_
    write_arrays(out, {"repeated": np.array(sorted(repeated), np.int64).reshape(-1, 2)})


def index_ids(out: Path, parts: Sequence[Made], repeated: Made | None) -> None:
    """Step: write `documents.db`, without what was repeated. Memory: what the merge holds."""
    gone = [left_out(repeated, number) for number in range(len(parts))]
    own = [noted(part)["documents"] - len(left) for part, left in zip(parts, gone, strict=True)]
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


def left_out(repeated: Made | None, part: int) -> npt.NDArray[np.int64]:
    """Places in a part of the documents that repeat an id, ascending."""
    if repeated is None:
        return np.zeros(0, np.int64)
    found = mapped(repeated, "repeated")
    return np.asarray(found[found[:, 0] == part, 1])


def ids_at(part: Made, places: npt.NDArray[np.int64]) -> Iterator[str]:
    """Ids of documents at some places of a part."""
    if not len(places):
        return
    order = np.argsort(mapped(part, "ids_places"))
    content, starts = mapped(part, "ids"), mapped(part, "ids_starts")
    for at in order[places].tolist():
        yield content[starts[at] : starts[at + 1]].tobytes().decode()


def _merged(parts: Sequence[Made]) -> Iterator[tuple[bytes, int, int]]:
    """Ids of all parts in order, each with its part and its place there; the earliest first."""
    return heapq.merge(*(_ids_of(part, number) for number, part in enumerate(parts)))


def _ids_of(made: Made, part: int) -> Iterator[tuple[bytes, int, int]]:
    content = mapped(made, "ids").data
    starts, places = mapped(made, "ids_starts").data, mapped(made, "ids_places")
    for i, place in enumerate(places.data):
        yield bytes(content[starts[i] : starts[i + 1]]), part, place
