"""Parts of the default ranking for single documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal, unchecked
from klsa_search.lowrank.coverage import NEIGHBOURHOOD
from klsa_search.lowrank.sparse_expansion import LATENT_LEVELS, LEVELS
from klsa_search.search.engine.scan import find
from klsa_search.search.engine.workspace import TERM_GROUP, IndexArrays, QueryContext, Workspace

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

BATCH = 64  # candidates that are read ahead: two cache lines of each fit the first cache
QUERY_LEVELS = 2**14  # value of the largest coordinate of a query vector
FILTER = 2**13  # bytes of the filter that saves look-ups; they fit the first cache
NO_DOCUMENT = np.uint32(2**32 - 1)  # an ordinal that no document has


@inlined
def read_rows(
    rows: npt.NDArray[np.uint32], documents: Ints, slots: Ints, begin: int, end: int
) -> np.uint32:
    """Read a part of the row of each document of a batch.

    Documents lie anywhere in memory. Here no read waits for another, and what is read is in the
    cache when it is used; the caller stores the result, so that the reads are not optimised away.
    """
    bits = np.uint32(0)
    for i in range(begin, end):
        document = documents[slots[i]]
        bits |= rows[document, 0] | rows[document, rows.shape[1] // 3]
    return bits


@inlined
def read_features(
    index: IndexArrays, documents: Ints, slots: Ints, begin: int, end: int
) -> np.uint32:
    """Read a part of the features of each document of a batch: see `read_rows`."""
    starts, features = index.feature_starts, index.features
    bits = np.uint32(0)
    for i in range(begin, end):
        document = documents[slots[i]]
        first, after = starts[document], starts[document + 1]
        if first < after:
            bits |= features[first] | features[min(first + 16, after - 1)]
    return bits


@inlined
def read_vectors(vectors: npt.NDArray[np.int8], documents: Ints, begin: int, end: int) -> np.int8:
    """Read a part of the vector of each document of a batch of slots: see `read_rows`."""
    bits = np.int8(0)
    for slot in range(begin, end):
        bits |= vectors[documents[slot], 0]
    return bits


@unchecked
def score_coverage(
    index: IndexArrays,
    workspace: Workspace,
    stride: int,
    best: int,
    slots: Ints,
    count: int,
    neighbours: int,
    covered: Floats,
) -> None:
    """Compute T of the documents of some slots: see `lowrank.coverage`.

    T is Σ weight · y / (y + half) over the terms, y = own + part · Σ shares[i] · impacts[near[i]].
    Eight terms are always added in the same pairs.

    best        last slot that has impacts; rows of documents in other partitions follow
    slots       (count,) or longer
    neighbours  to consider; 0 gives T of the document alone, a lower bound
    """
    documents, slot_of, is_best = workspace.documents, workspace.slots, workspace.is_best
    impacts, weights, half = workspace.impacts, workspace.term_weights, workspace.half
    sums = workspace.neighbour_impacts
    near, shares, rows = workspace.near, workspace.shares, index.rows
    for begin in range(0, count, BATCH):
        end = min(begin + BATCH, count)
        if neighbours > 0:
            near[0] = read_rows(rows, documents, slots, begin, end)
        for i in range(begin, end):
            slot = slots[i]
            document = documents[slot]
            hits, levels = 0, np.uint32(0)
            if document < len(index.rows_elsewhere):
                hits, levels = _find_near(index, workspace, document, best, neighbours)
            else:
                for place in range(neighbours):
                    entry = rows[document, place]
                    level = entry & np.uint32(LEVELS)
                    levels += level
                    other = entry >> np.uint32(8)
                    near[hits] = other
                    shares[hits] = np.float32(level)
                    # No branch: it would be mispredicted. Bits fit the cache, slots do not.
                    bit = (is_best[other >> np.uint32(5)] >> (other & np.uint32(31))) & np.uint32(1)
                    hits += bit & (level > 0)
                for place in range(hits):
                    near[place] = slot_of[near[place]]
            for place in range(hits):
                near[place] *= stride
            part = np.float32(NEIGHBOURHOOD) / np.float32(max(levels, np.uint32(1)))
            own = slot * stride if slot <= best else 0
            total = np.float32(0)
            for first in range(0, stride, TERM_GROUP):
                for lane in range(TERM_GROUP):
                    sums[lane] = 0
                for place in range(hits):
                    offset, share = near[place] + first, shares[place]
                    for lane in range(TERM_GROUP):
                        sums[lane] += share * impacts[offset + lane]
                for lane in range(TERM_GROUP):
                    y = impacts[own + first + lane] + part * sums[lane]
                    sums[lane] = weights[first + lane] * (y / (y + half[first + lane]))
                even = (sums[0] + sums[4]) + (sums[2] + sums[6])
                total += even + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
            covered[i] = total


@inlined
def _find_near(
    index: IndexArrays, workspace: Workspace, document: int, best: int, neighbours: int
) -> tuple[int, np.uint32]:
    """Write places in `impacts` and levels of the neighbours that are among the best.

    Neighbours in this partition and in others, strongest first, count together. Returns how many
    were written, and the sum of the levels of all.
    """
    is_best, near, shares = workspace.is_best, workspace.near, workspace.shares
    hits, levels, here, there = 0, np.uint32(0), 0, 0
    for _ in range(neighbours):
        entry = index.rows[document, here]
        level, level_there = entry & np.uint32(LEVELS), index.levels_elsewhere[document, there]
        if level >= level_there:
            other = entry >> np.uint32(8)
            bit = (is_best[other >> np.uint32(5)] >> (other & np.uint32(31))) & np.uint32(1)
            place = workspace.slots[other] if bit else 0
            here += 1
        else:
            level = np.uint32(level_there)
            place = _place_elsewhere(index.rows_elsewhere[document, there], workspace, best)
            there += 1
        levels += level
        near[hits] = place
        shares[hits] = np.float32(level)
        hits += (place > 0) & (level > 0)
    return hits, levels


@inlined
def _place_elsewhere(ordinal: np.uint32, workspace: Workspace, best: int) -> int:
    """Return the place in `impacts` of a document of another partition; 0 if it has none."""
    elsewhere = workspace.elsewhere
    if not workspace.elsewhere_filter[ordinal & np.uint32(FILTER - 1)]:
        return 0
    place = find(elsewhere, int(np.int64(0)), len(elsewhere), int(ordinal))
    return best + 1 + place if elsewhere[place] == ordinal else 0


@internal
def load_elsewhere(
    context: QueryContext,
    terms: int,
    stride: int,
    best: int,
    numbers: npt.NDArray[np.int64],
    ordinals: npt.NDArray[np.uint32],
    impacts: Floats,
    workspace: Workspace,
) -> None:
    """Add the impacts of the best documents of other partitions to those of this one.

    numbers   (n,) terms of the columns of `impacts`
    ordinals  (m,) of the documents, ascending
    impacts   (m, n)
    """
    count = len(ordinals)
    workspace.elsewhere[:count] = ordinals
    workspace.elsewhere[count:] = NO_DOCUMENT
    for i in range(count):
        workspace.elsewhere_filter[ordinals[i] & np.uint32(FILTER - 1)] = True
    first = (best + 1) * stride
    workspace.impacts[first : first + count * stride] = 0
    for column in range(len(numbers)):
        for j in range(terms):
            if context.term[j] == numbers[column]:
                for i in range(count):
                    workspace.impacts[first + i * stride + j] = impacts[i, column]


@internal
def release_elsewhere(ordinals: npt.NDArray[np.uint32], workspace: Workspace) -> None:
    """Clear the filter of the documents of other partitions."""
    for i in range(len(ordinals)):
        workspace.elsewhere_filter[ordinals[i] & np.uint32(FILTER - 1)] = False


@internal
def project_query(
    context: QueryContext, terms: int, index: IndexArrays, workspace: Workspace
) -> np.float32:
    """Project the query to the latent space, in integer steps; return one step of a cosine."""
    query_floats, coordinates, steps = workspace.query_floats, index.term_vectors, index.term_steps
    dimensions = len(query_floats)
    query_floats[:] = 0
    for j in range(terms):
        term = context.term[j]
        if term >= len(coordinates):  # only in documents added after the build
            continue
        count = np.float32(context.query_counts[j])
        step = count * index.burstiness[term] * steps[term, steps.shape[1] - 1]
        for i in range(dimensions):
            query_floats[i] += step * np.float32(coordinates[term, i])
    largest = np.float32(0)
    for i in range(dimensions):
        largest = max(largest, abs(query_floats[i]))
    if largest == 0:
        workspace.query_vector[:dimensions] = 0
        return np.float32(0)
    for i in range(dimensions):
        workspace.query_vector[i] = np.int16(np.rint(query_floats[i] / largest * QUERY_LEVELS))
    return largest / np.float32(QUERY_LEVELS * LATENT_LEVELS)


@internal
def latent_score(
    document_vectors: npt.NDArray[np.int8], document: int, query_vector: npt.NDArray[np.int16]
) -> np.int32:
    """Return the inner product of a document and the query vector, in steps: integers, so exact.

    Over the whole document vector: the query vector is 0 beyond its coordinates.
    """
    steps = np.int32(0)
    for i in range(len(query_vector)):
        steps = np.int32(
            steps + np.int32(document_vectors[document, i]) * np.int32(query_vector[i])
        )
    return steps


@inlined
def add_features(
    document: int, weight: np.float32, index: IndexArrays, workspace: Workspace
) -> None:
    """Add a seed's features to the sums; `weight` in steps of the sums."""
    factor = weight * index.document_scalars[document, index.document_scalars.shape[1] - 3]
    features, sums = index.features, workspace.sums
    for p in range(index.feature_starts[document], index.feature_starts[document + 1]):
        level = np.float32(features[p] & np.uint32(LEVELS))
        sums[features[p] >> np.uint32(8)] += np.int16(np.rint(factor * level))


@inlined
def clear_features(document: int, index: IndexArrays, workspace: Workspace) -> None:
    """Set the sums of a seed's features to 0."""
    features, sums = index.features, workspace.sums
    for p in range(index.feature_starts[document], index.feature_starts[document + 1]):
        sums[features[p] >> np.uint32(8)] = 0


@inlined
def expansion_score(
    document: int, index: IndexArrays, workspace: Workspace, centre: Any
) -> np.float32:
    """Return Σ_s weight(s) · K(s, d), from the features."""
    scale, mean, mean_square, step = centre
    first, after = index.feature_starts[document], index.feature_starts[document + 1]
    steps = inner_product(index.features, first, after, workspace.sums)
    document_scalars, last = index.document_scalars, index.document_scalars.shape[1] - 1
    centring = scale * document_scalars[document, last]
    centring += document_scalars[document, last - 1] * (mean - scale * mean_square)
    return np.float32(step * steps * document_scalars[document, last - 2] - centring)


@internal
def inner_product(
    entries: npt.NDArray[np.uint32], first: int, after: int, sums: npt.NDArray[np.int16]
) -> np.int64:
    """Return Σ sums[feature] · level: integers, so exact in any order."""
    total = np.int64(0)
    for i in range(first, after):
        entry = entries[i]
        total += np.int64(sums[entry >> np.uint32(8)]) * np.int64(entry & np.uint32(LEVELS))
    return total
