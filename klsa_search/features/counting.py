"""Count the terms and adjacent pairs of a block of documents, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled
from klsa_search.selection import sort_ascending

_INT32 = npt.NDArray[np.int32]


class Block(NamedTuple):
    """Some documents, as numbers of terms.

    words    of all parts, one after the other; below 0 where a word makes no term
    lengths  words of each part
    parts    of each document
    """

    words: _INT32
    lengths: _INT32
    parts: _INT32


class BlockCounts(NamedTuple):
    """Entries by document, and by column within each.

    sizes       (documents,) distinct terms
    columns     their numbers, `counts` how often each stands there, in a title by its weight
    key_sizes   (documents,) distinct pairs
    keys        lesser term · V + greater term, `key_counts` how often
    """

    sizes: _INT32
    columns: _INT32
    counts: _INT32
    key_sizes: _INT32
    keys: npt.NDArray[np.int64]
    key_counts: _INT32


def count_block(block: Block, paired: npt.NDArray[np.bool_], title_weight: int) -> BlockCounts:
    """Count one block. O(T log t) for T words in documents of t; 24 bytes a word.

    paired        (V,) which terms make pairs; words side by side are those without the others
    title_weight  how often a word counts that stands in the first of several parts
    """
    documents, tokens = len(block.parts), len(block.words)
    found = BlockCounts(
        np.zeros(documents, np.int32),
        np.empty(tokens, np.int32),
        np.empty(tokens, np.int32),
        np.zeros(documents, np.int32),
        np.empty(tokens, np.int64),
        np.empty(tokens, np.int32),
    )
    singles, pairs = _count(*block, paired, title_weight, *found)
    return BlockCounts(
        found.sizes,
        found.columns[:singles],
        found.counts[:singles],
        found.key_sizes,
        found.keys[:pairs],
        found.key_counts[:pairs],
    )


@compiled
def _count(
    words: Any,
    lengths: Any,
    parts: Any,
    paired: Any,
    title_weight: int,
    sizes: Any,
    columns: Any,
    counts: Any,
    key_sizes: Any,
    keys: Any,
    key_counts: Any,
) -> tuple[int, int]:
    # Each value is followed by a bit that says whether it is of a title.
    V = np.int64(len(paired))
    word, part, singles, pairs = 0, 0, 0, 0
    for document in range(len(parts)):
        first, first_pair = singles, pairs
        for place in range(parts[document]):
            titled = int(place == 0 and parts[document] > 1)
            before = -1
            for _ in range(lengths[part]):
                here = words[word]
                word += 1
                if here < 0:
                    continue
                columns[singles] = here << 1 | titled
                singles += 1
                if not paired[here]:
                    continue
                # No pair across the end of a part, and none of a term with itself.
                if before >= 0 and before != here:
                    key = min(before, here) * V + max(before, here)
                    keys[pairs] = key << 1 | titled
                    pairs += 1
                before = here
            part += 1
        singles = _collapse(columns, counts, first, singles, title_weight)
        pairs = _collapse(keys, key_counts, first_pair, pairs, title_weight)
        sizes[document] = singles - first
        key_sizes[document] = pairs - first_pair
    return singles, pairs


@compiled
def _collapse(values: Any, counts: Any, first: int, last: int, title_weight: int) -> int:
    """Sort values[first:last], keep each once without its bit and count it; return the new end."""
    sort_ascending(values, first, last)
    kept = first
    for i in range(first, last):
        value, weight = values[i] >> 1, title_weight if values[i] & 1 else 1
        if kept > first and value == values[kept - 1]:
            counts[kept - 1] += weight
        else:
            values[kept] = value
            counts[kept] = weight
            kept += 1
    return kept
