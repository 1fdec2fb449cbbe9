"""Keeping: the files of a generation that need nothing but documents and counts, from pieces."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.cluster.analysing import documents_of, terms_of
from klsa_search.cluster.files import mapped, note
from klsa_search.cluster.work import Made
from klsa_search.delta.epoch import Numbered
from klsa_search.delta.pairs import encode_pairs
from klsa_search.expansion.packing import NUMBERS
from klsa_search.features.spool import Spools
from klsa_search.indexing.reading import batches_of, content_of
from klsa_search.store.arrays import ArrayWriter, write_arrays
from klsa_search.store.fields.declared import Declared
from klsa_search.store.fields.writing import FieldsWriter
from klsa_search.store.names import SCRATCH

_PIECE: Final = 2**20  # elements that are copied at a time


def take_sum(out: Path, records: Made, documents: int) -> None:
    """Step: the digest of all documents that a fingerprint is made of."""
    digest = hashlib.sha256()
    for batch in batches_of(documents_of(records, 0, documents)):
        digest.update(b"".join(map(content_of, batch)))
    note(out, digest=digest.hexdigest())


def write_fields(out: Path, records: Made, documents: int, declared: Mapping[str, Any]) -> None:
    """Step: the columns of metadata fields. Memory: the texts of the keyword fields."""
    types = Declared(declared)
    scratch = out / SCRATCH
    scratch.mkdir()
    writer = FieldsWriter(types.types, Spools(scratch, _PIECE).spool(np.uint8))
    for batch in batches_of(documents_of(records, 0, documents)):
        for document in batch:
            types.fault(document.metadata)  # there is none: what it finds is the types
        writer.extend(batch)
    fields = writer.finish(out)
    shutil.rmtree(scratch)
    note(out, **fields.model_dump(mode="json"))


def choose_pairs(
    out: Path, summed: Made, vocabulary: Made, ranges: Sequence[Made], pairs: bool
) -> None:
    """Step: tell which pairs of each range are features that have numbers, if pairs are any."""
    frequencies = np.array(mapped(summed, "frequencies"))
    frequencies[mapped(vocabulary, "common")] = 0
    held = [frequencies, *(mapped(made, "held") for made in ranges)]
    sizes = np.zeros(1 + max(int(each.max(initial=0)) for each in held), np.int64)
    for each in held:
        sizes += np.bincount(each, minlength=len(sizes))
    numbered = Numbered.of(sizes, NUMBERS)
    chosen, left = [], numbered.equal
    for each in held:
        chosen.append([numbered.above if pairs else len(sizes), max(left, 0)])
        left -= int(np.count_nonzero(each == numbered.above))
    note(out, numbered=chosen[1:])


def encode_range(
    out: Path, shared: Made, numbered: Sequence[int], vocabulary: Made, low: int, high: int
) -> None:
    """Step: the codes of `epoch_pairs` for keys from `low` to below `high`, multiples of V."""
    V = terms_of(vocabulary)
    keys, held = mapped(shared, "keys"), mapped(shared, "held")
    kept = Numbered(*numbered).among(held)
    codes = encode_pairs(keys[kept], held[kept], V, low // max(V, 1), high // max(V, 1))
    write_arrays(out, {"epoch_pairs": codes})


def join(out: Path, name: str, parts: Sequence[Made], kind: str, source: str | None = None) -> None:
    """Step: write an array of a generation, the parts' own end to end."""
    with ArrayWriter(out, name, kind) as writer:
        for part in parts:
            array = mapped(part, source or name)
            for first in range(0, len(array), _PIECE):
                writer.append(array[first : first + _PIECE].astype(kind, copy=False))


def join_sizes(out: Path, name: str, parts: Sequence[Made], source: str) -> None:
    """Step: write where each document begins, of the parts' sizes."""
    sizes = (mapped(part, source) for part in parts)
    write_arrays(out, {name: np.cumsum(np.concatenate((np.zeros(1, np.int64), *sizes)))})


def join_postings(out: Path, parts: Sequence[Made]) -> None:
    """Step: write the postings of all terms, of those of ranges of terms."""
    first = parts[0].path
    write_arrays(out, {"postings_shape": mapped(first, "postings_shape")})
    for name in ("starts", "run_starts"):
        sizes = (np.diff(mapped(part, f"postings_{name}")) for part in parts)
        starts = np.cumsum(np.concatenate((np.zeros(1, np.int64), *sizes)))
        write_arrays(out, {f"postings_{name}": starts})
    for name in ("entries", "runs", "best", "occurrences"):
        shape = mapped(first, f"postings_{name}")
        columns = shape.shape[1] if shape.ndim == 2 else None
        with ArrayWriter(out, f"postings_{name}", shape.dtype, columns) as writer:
            for part in parts:
                array = mapped(part, f"postings_{name}")
                for begin in range(0, len(array), _PIECE):
                    writer.append(array[begin : begin + _PIECE])
