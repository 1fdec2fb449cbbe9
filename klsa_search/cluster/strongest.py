"""The strongest entries of the rows of each shard, found among the documents of all.

Postings are cut feature by feature, over the documents of all shards; then each shard's part of
them is put together, and each shard looks for its rows in one part after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.cluster.files import mapped, noted, save
from klsa_search.cluster.kernels import Part, range_of
from klsa_search.cluster.work import Made, Work
from klsa_search.kernel.looking import Effort, Looking, Rows
from klsa_search.kernel.nearest import empty_rows, matrix_of
from klsa_search.kernel.pool import CutPostings, cut_postings

_CHUNK = 8192  # rows that look through all parts at a time
_NAMES = ("starts", "documents", "values")


def strongest_rows(
    work: Work, parts: Sequence[Part], ranges: int, *, features: int, entries: int
) -> list[Made]:
    """Find the `entries` strongest of each row, as `kernel.nearest_rows` does, shard by shard.

    The rows are in `starts`, `columns` and `values` of the folders.
    Cost O(N), and each shard reads what it needs of all others: the features, and their postings.
    """
    cut = work.make(
        _cut,
        *({"parts": parts, "number": number, "cut": Effort().cut} for number in range(ranges)),
    )
    postings = work.make(_joined, *({"ranges": cut, "part": i} for i in range(len(parts))))
    starts = work.one(_starts, ranges=cut)
    work.empty(*cut)
    found = work.make(
        _found,
        *(
            {
                "parts": parts,
                "own": own,
                "postings": postings,
                "starts": starts,
                "features": features,
                "entries": entries,
            }
            for own in range(len(parts))
        ),
    )
    work.empty(*postings, starts)
    return found


def _cut(out: Path, *, parts: Sequence[Part], number: int, cut: int) -> None:
    """Postings of a range of features, of all documents, and of each part those that stay."""
    blocks, width = [], 0
    for part in parts:
        starts, columns, weights = range_of(part, number)
        width = _width(parts, number)
        shape = (part["documents"], width)
        blocks.append(sparse.csr_array((weights, columns, starts), shape=shape))
    features = blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")
    del blocks
    scales = np.concatenate([mapped(part["kernel"], "posting_scales") for part in parts])
    whole, documents, values = cut_postings(sparse.csr_array(features), scales, cut)
    save(out, starts=whole)
    for i, part in enumerate(parts):
        first = part["first"]
        here = (documents >= first) & (documents < first + part["documents"])
        starts = np.concatenate(([0], np.cumsum(here)))[whole]
        own = starts, documents[here] - np.int32(first), values[here]
        save(out, **{f"part{i}_{name}": array for name, array in zip(_NAMES, own, strict=True)})


def _width(parts: Sequence[Part], number: int) -> int:
    edges = noted(parts[0]["kernel"])["edges"]
    return int(edges[number + 1] - edges[number])


def _joined(out: Path, *, ranges: Sequence[Made], part: int) -> None:
    """The postings of a part, of all features."""
    arrays: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for each in ranges:
        for name, some in arrays.items():
            some.append(mapped(each, f"part{part}_{name}"))
    starts = _end_to_end(arrays.pop("starts"))
    save(out, starts=starts, **{name: np.concatenate(some) for name, some in arrays.items()})


def _starts(out: Path, *, ranges: Sequence[Made]) -> None:
    """Where the postings of each feature begin, those of all parts together."""
    save(out, starts=_end_to_end([mapped(each, "starts") for each in ranges]))


def _end_to_end(starts: Sequence[Any]) -> Any:
    sizes = np.concatenate([np.diff(some) for some in starts])
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _found(
    out: Path, *, parts: Sequence[Part], own: int, postings: Sequence[Made], starts: Made,
    features: int, entries: int,
) -> None:  # fmt: skip
    """The rows of a part: all parts add to their pools, chunk by chunk, then K is computed."""
    first, size = parts[own]["first"], parts[own]["documents"]
    mine, of_feature = _rows(parts[own]), mapped(starts, "starts")
    most = max(part["documents"] for part in parts)
    looking = Looking(Effort(), min(_CHUNK, size), most, features, mine.longest)
    rows = empty_rows(size, entries)
    for begin in range(0, size, _CHUNK):
        documents = np.arange(first + begin, first + min(begin + _CHUNK, size))
        looking.ask(documents, mine, of_feature)
        for part, some in zip(parts, postings, strict=True):
            looking.add(part["first"], _postings(some))
        for part in parts:
            looking.compare(_rows(part))
        looking.keep(rows, begin)
    last = parts[-1]["first"] + parts[-1]["documents"]
    found = matrix_of(rows, np.arange(size), (size, last))
    save(out, starts=found.indptr, columns=found.indices, values=found.data)


def _postings(made: Made) -> CutPostings:
    starts, documents, values = (mapped(made, name) for name in _NAMES)
    return starts, documents, values


def _rows(part: Part) -> Rows:
    """The features of a part; what is read at a time is in memory, and no more."""
    kernel: Made = part["kernel"]
    starts, weights = mapped(kernel, "starts"), mapped(kernel, "weights")
    columns = mapped(part["features"], "features_columns")
    scales, towards_mean = (np.ascontiguousarray(some) for some in mapped(kernel, "centring").T)
    square = np.float32(noted(kernel)["mean_square"])
    weights = weights.astype(np.float32, copy=False)
    return Rows(part["first"], (narrowed(starts), columns, weights), (scales, towards_mean, square))
