"""Weighing: from counts to the features of a shard, the forward index and the postings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.cluster.analysing import blocks_of, settings_of, terms_of
from klsa_search.cluster.files import mapped, noted
from klsa_search.cluster.rows import Pairs, Rows
from klsa_search.cluster.work import Made
from klsa_search.features import bm25
from klsa_search.features.counts import without_columns
from klsa_search.kernel.postings import Postings, postings_arrays
from klsa_search.store.arrays import ArrayWriter, write_arrays
from klsa_search.store.forward import encoded


def average_of(summed: Made, of: str) -> float:
    """dl_avg of "length" or "content": the float that the mean of all lengths is."""
    facts = noted(summed)
    return bm25.mean_length(facts[of], facts["documents"])


def weigh_terms(out: Path, summed: Made, vocabulary: Made, settings: Mapping[str, Any]) -> None:
    """Step: w(t)^p of all terms, as documents have it, `content`, and as queries do, `weights`."""
    chosen, documents = settings_of(settings), noted(summed)["documents"]
    frequencies = mapped(summed, "frequencies")
    content = frequencies.copy()
    content[mapped(vocabulary, "common")] = 0
    arrays = {
        "weights": bm25.idf_of(frequencies, documents) ** chosen.idf_power,
        "content": bm25.idf_of(content, documents) ** chosen.idf_power,
    }
    write_arrays(out, arrays)


def weigh_shard(
    out: Path,
    pieces: Sequence[Made],
    vocabulary: Made,
    summed: Made,
    weights: Made,
    ranges: Sequence[Made],
    settings: Mapping[str, Any],
) -> None:
    """Step: Φ of the documents of some pieces.

    features_starts   int64
    features_columns  int32, of all V terms and P pairs
    features_weights  float64
    Memory: the pairs of one piece, and some 100 bytes an entry of a block.
    """
    chosen, V = settings_of(settings), terms_of(vocabulary)
    weighing = bm25.Weighing(chosen.kernel_k1, chosen.b, average_of(summed, "content"))
    common = mapped(vocabulary, "common")
    of_terms = mapped(weights, "content")
    documents = noted(summed)["documents"]
    sizes = [np.zeros(1, np.int64)]
    with (
        ArrayWriter(out, "features_columns", np.int32) as columns,
        ArrayWriter(out, "features_weights", np.float64) as values,
    ):
        for piece in pieces:
            pairs = Pairs.of(piece, mapped(summed, "limits"), ranges, V)
            of_pairs = chosen.pairs * bm25.idf_of(pairs.held, documents) ** chosen.idf_power
            for rows in Rows.of(piece, V):
                matrix = without_columns(rows.matrix, common) if len(common) else rows.matrix
                features = weighing.features(matrix, rows.lengths, of_terms)
                if chosen.pairs:
                    own = pairs.counts(rows)
                    features = weighing.side_by_side(features, own, rows.lengths, of_pairs)
                numbers = features.indices.astype(np.int32)
                paired = numbers >= V
                numbers[paired] = V + pairs.numbers[numbers[paired] - V]
                columns.append(numbers)
                values.append(features.data)
                sizes.append(np.diff(features.indptr).astype(np.int64))
    write_arrays(out, {"features_starts": np.cumsum(np.concatenate(sizes))})


def encode(out: Path, piece: Made, vocabulary: Made, number: int, summed: Made) -> None:
    """Step: the forward index of the documents of a piece: its codes, and the bytes of each."""
    ranks = mapped(summed, "forward_ranks")
    sizes = [np.zeros(0, np.int64)]
    with ArrayWriter(out, "forward_codes", np.uint8) as writer:
        for block in blocks_of(piece, vocabulary, number):
            codes, of_each = encoded(block, ranks)
            writer.append(codes)
            sizes.append(of_each)
    write_arrays(out, {"sizes": np.concatenate(sizes)})


def post(
    out: Path,
    pieces: Sequence[Made],
    summed: Made,
    low: int,
    high: int,
    settings: Mapping[str, Any],
) -> None:
    """Step: postings of the terms from `low` to below `high`, of all documents.

    Memory: 12 bytes a posting of theirs, 16 a document.
    """
    chosen = settings_of(settings)
    sizes, terms, counts = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    lengths = [np.zeros(0, np.int64)]
    for piece in pieces:
        lengths.append(mapped(piece, "lengths"))
        for rows in Rows.of(piece, high):
            held = (rows.matrix.indices >= low) & (rows.matrix.indices < high)
            terms.append(rows.matrix.indices[held] - np.int32(low))
            counts.append(rows.matrix.data[held])
            before = np.concatenate(([0], np.cumsum(held)))[rows.matrix.indptr]
            sizes.append(np.diff(before))
    starts = narrowed(np.cumsum(np.concatenate(sizes)))
    N = len(starts) - 1
    entries = np.concatenate(counts), np.concatenate(terms), starts
    matrix = sparse.csr_array(entries, shape=(N, high - low))
    average = bm25.standing_length(average_of(summed, "length"))
    norms = bm25.norms(np.concatenate(lengths), average, k1=chosen.k1, b=chosen.b)
    write_arrays(out, postings_arrays(Postings.of(matrix, norms, chosen.k1)))
