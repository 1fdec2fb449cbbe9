"""Steps that compute features, postings and other files of a generation from counts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import sparse

from klsa_search.cluster.analysing import blocks_of, documents_of, settings_of, terms_of
from klsa_search.cluster.counting import Pairs, Rows
from klsa_search.cluster.work import StepResult, map_array, read_facts, write_facts
from klsa_search.core.array_types import narrow_indptr
from klsa_search.delta.statistics import Numbered, encode_pairs
from klsa_search.indexing.reading import build_batches, content_of
from klsa_search.kernels import bm25
from klsa_search.kernels.counts import without_columns
from klsa_search.kernels.plugins import feature_weighting
from klsa_search.kernels.postings import Postings, postings_arrays
from klsa_search.kernels.spool import Spools
from klsa_search.kernels.weighting import mean_length
from klsa_search.lowrank.sparse_expansion import NUMBERS
from klsa_search.storage.arrays import ArrayWriter, write_arrays
from klsa_search.storage.columns.builder import FieldsWriter
from klsa_search.storage.columns.declared import DeclaredFields
from klsa_search.storage.forward_index import encoded
from klsa_search.storage.names import SCRATCH


def average_of(summed: StepResult, of: str) -> float:
    """Return the mean document length, of "length" or "content" (without common terms)."""
    facts = read_facts(summed)
    return mean_length(facts[of], facts["documents"])


def weigh_terms(
    out: Path, summed: StepResult, vocabulary: StepResult, settings: Mapping[str, Any]
) -> None:
    """Step: term weights w(t)^p of queries (`weights`) and of documents (`content`)."""
    weighting = feature_weighting(settings_of(settings))
    documents = read_facts(summed)["documents"]
    frequencies = map_array(summed, "frequencies")
    content = frequencies.copy()
    content[map_array(vocabulary, "common")] = 0
    arrays = {
        "weights": weighting.weight(frequencies, documents),
        "content": weighting.weight(content, documents),
    }
    write_arrays(out, arrays)


def weigh_shard(
    out: Path,
    pieces: Sequence[StepResult],
    vocabulary: StepResult,
    summed: StepResult,
    weights: StepResult,
    ranges: Sequence[StepResult],
    settings: Mapping[str, Any],
) -> None:
    """Step: features Φ of the documents of some pieces.

    features_starts   int64
    features_columns  int32, of all V terms and P pairs
    features_weights  float64
    Memory: the pairs of one piece, and about 100 bytes for each entry of a block.
    """
    chosen, V = settings_of(settings), terms_of(vocabulary)
    weighting, average = feature_weighting(chosen), average_of(summed, "content")
    common = map_array(vocabulary, "common")
    of_terms = map_array(weights, "content")
    documents = read_facts(summed)["documents"]
    sizes = [np.zeros(1, np.int64)]
    with (
        ArrayWriter(out, "features_columns", np.int32) as columns,
        ArrayWriter(out, "features_weights", np.float64) as values,
    ):
        for piece in pieces:
            pairs = Pairs.of(piece, map_array(summed, "limits"), ranges, V)
            of_pairs = chosen.pairs * weighting.weight(pairs.held, documents)
            for rows in Rows.of(piece, V):
                matrix = without_columns(rows.matrix, common) if len(common) else rows.matrix
                features = weighting.features(matrix, rows.lengths, average, of_terms)
                if chosen.pairs:
                    own = pairs.counts(rows)
                    features = weighting.append_pairs(
                        features, own, rows.lengths, average, of_pairs
                    )
                numbers = features.indices.astype(np.int32)
                paired = numbers >= V
                numbers[paired] = V + pairs.numbers[numbers[paired] - V]
                columns.append(numbers)
                values.append(features.data)
                sizes.append(np.diff(features.indptr).astype(np.int64))
    write_arrays(out, {"features_starts": np.cumsum(np.concatenate(sizes))})


def encode(
    out: Path, piece: StepResult, vocabulary: StepResult, number: int, summed: StepResult
) -> None:
    """Step: forward index of a piece: codes, and the bytes of each document."""
    ranks = map_array(summed, "forward_ranks")
    sizes = [np.zeros(0, np.int64)]
    with ArrayWriter(out, "forward_codes", np.uint8) as writer:
        for block in blocks_of(piece, vocabulary, number):
            codes, of_each = encoded(block, ranks)
            writer.append(codes)
            sizes.append(of_each)
    write_arrays(out, {"sizes": np.concatenate(sizes)})


def post(
    out: Path,
    pieces: Sequence[StepResult],
    summed: StepResult,
    low: int,
    high: int,
    settings: Mapping[str, Any],
) -> None:
    """Step: postings of the terms in [low, high), of all documents.

    Memory: 12 bytes for each posting, 16 for each document.
    """
    chosen = settings_of(settings)
    sizes, terms, counts = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    lengths = [np.zeros(0, np.int64)]
    for piece in pieces:
        lengths.append(map_array(piece, "lengths"))
        for rows in Rows.of(piece, high):
            held = (rows.matrix.indices >= low) & (rows.matrix.indices < high)
            terms.append(rows.matrix.indices[held] - np.int32(low))
            counts.append(rows.matrix.data[held])
            before = np.concatenate(([0], np.cumsum(held)))[rows.matrix.indptr]
            sizes.append(np.diff(before))
    starts = narrow_indptr(np.cumsum(np.concatenate(sizes)))
    N = len(starts) - 1
    entries = np.concatenate(counts), np.concatenate(terms), starts
    matrix = sparse.csr_array(entries, shape=(N, high - low))
    average = bm25.quantised_length(average_of(summed, "length"))
    norms = bm25.norms(np.concatenate(lengths), average, k1=chosen.k1, b=chosen.b)
    write_arrays(out, postings_arrays(Postings.of(matrix, norms, chosen.k1)))


_PIECE: Final = 2**20  # elements copied at a time


def take_sum(out: Path, records: StepResult, documents: int) -> None:
    """Step: digest of all documents, for the fingerprint."""
    digest = hashlib.sha256()
    for batch in build_batches(documents_of(records, 0, documents)):
        digest.update(b"".join(map(content_of, batch)))
    write_facts(out, digest=digest.hexdigest())


def write_fields(
    out: Path, records: StepResult, documents: int, declared: Mapping[str, Any]
) -> None:
    """Step: columns of the metadata fields. Memory: the texts of the keyword fields."""
    types = DeclaredFields(declared)
    scratch = out / SCRATCH
    scratch.mkdir()
    writer = FieldsWriter(types.types, Spools(scratch, _PIECE).spool(np.uint8))
    for batch in build_batches(documents_of(records, 0, documents)):
        for document in batch:
            types.fault(document.metadata)  # called to detect the types; it returns no fault
        writer.extend(batch)
    fields = writer.finish(out)
    shutil.rmtree(scratch)
    write_facts(out, **fields.model_dump(mode="json"))


def choose_pairs(
    out: Path, summed: StepResult, vocabulary: StepResult, ranges: Sequence[StepResult], pairs: bool
) -> None:
    """Step: choose the pairs of each range that get feature numbers, if pairs are used."""
    frequencies = np.array(map_array(summed, "frequencies"))
    frequencies[map_array(vocabulary, "common")] = 0
    held = [frequencies, *(map_array(made, "held") for made in ranges)]
    sizes = np.zeros(1 + max(int(each.max(initial=0)) for each in held), np.int64)
    for each in held:
        sizes += np.bincount(each, minlength=len(sizes))
    numbered = Numbered.of(sizes, NUMBERS)
    chosen, left = [], numbered.equal
    for each in held:
        chosen.append([numbered.above if pairs else len(sizes), max(left, 0)])
        left -= int(np.count_nonzero(each == numbered.above))
    write_facts(out, numbered=chosen[1:])


def encode_range(
    out: Path,
    shared: StepResult,
    numbered: Sequence[int],
    vocabulary: StepResult,
    low: int,
    high: int,
) -> None:
    """Step: codes of `epoch_pairs` for keys in [low, high), multiples of V."""
    V = terms_of(vocabulary)
    keys, held = map_array(shared, "keys"), map_array(shared, "held")
    kept = Numbered(*numbered).among(held)
    codes = encode_pairs(keys[kept], held[kept], V, low // max(V, 1), high // max(V, 1))
    write_arrays(out, {"epoch_pairs": codes})


def join(
    out: Path, name: str, parts: Sequence[StepResult], kind: str, source: str | None = None
) -> None:
    """Step: concatenate the arrays of some parts."""
    with ArrayWriter(out, name, kind) as writer:
        for part in parts:
            array = map_array(part, source or name)
            for first in range(0, len(array), _PIECE):
                writer.append(array[first : first + _PIECE].astype(kind, copy=False))


def join_sizes(out: Path, name: str, parts: Sequence[StepResult], source: str) -> None:
    """Step: write the starts of the documents from their sizes in all parts."""
    sizes = (map_array(part, source) for part in parts)
    write_arrays(out, {name: np.cumsum(np.concatenate((np.zeros(1, np.int64), *sizes)))})


def join_postings(out: Path, parts: Sequence[StepResult]) -> None:
    """Step: concatenate the postings of ranges of terms."""
    first = parts[0].path
    write_arrays(out, {"postings_shape": map_array(first, "postings_shape")})
    for name in ("starts", "run_starts"):
        sizes = (np.diff(map_array(part, f"postings_{name}")) for part in parts)
        starts = np.cumsum(np.concatenate((np.zeros(1, np.int64), *sizes)))
        write_arrays(out, {f"postings_{name}": starts})
    for name in ("entries", "runs", "best", "occurrences"):
        shape = map_array(first, f"postings_{name}")
        columns = shape.shape[1] if shape.ndim == 2 else None
        with ArrayWriter(out, f"postings_{name}", shape.dtype, columns) as writer:
            for part in parts:
                array = map_array(part, f"postings_{name}")
                for begin in range(0, len(array), _PIECE):
                    writer.append(array[begin : begin + _PIECE])
