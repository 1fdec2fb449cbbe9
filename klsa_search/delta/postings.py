"""Postings of an index to which documents are written: those of the build, and later segments.

    saturated-STEP-DIGEST.bin    entries, runs and best of `Postings`, then CRC-32 of all of it
    saturated.lock               locked by the process that writes one

Writes may move the quantised mean length (`kernels.bm25.live_length`), and with it all
saturations of the build. They follow from the build and the length alone, so one process writes
them to a file of the generation and all processes map it, also after a restart. The file is a
cache: if it is missing or damaged, the first process that needs it writes it again.
"""

from __future__ import annotations

import logging
import zlib
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from klsa_search.core.array_types import Integers, Numbers, SparseRows
from klsa_search.core.installation import __version__
from klsa_search.kernels.bm25 import length_norms, length_step
from klsa_search.kernels.postings import Postings, Segment
from klsa_search.storage.files import replacement
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import NEW

_CHECKSUM_BYTES: Final = 4
"""Size of the checksum at the end of a file."""

_log = logging.getLogger(__name__)


class SaturatedPostings:
    """The postings of a generation for any quantised mean length; safe to share between threads.

    postings  as built
    lengths   (N,) of its documents
    average   quantised mean length by which the postings are saturated
    """

    def __init__(
        self,
        generation: Path,
        manifest: Manifest,
        postings: Postings,
        lengths: npt.NDArray[np.int32],
        average: float,
    ) -> None:
        self._generation, self._postings, self._lengths = generation, postings, lengths
        self._average = average
        settings = manifest.checked_settings()
        # With the numbers of terms of these postings, which those of a partition may not be.
        self._forward = Forward.open(generation, settings.searched_fields)
        self.b = settings.b
        key = f"{__version__} {manifest.fingerprint}"
        self._digest = blake2b(key.encode(), digest_size=16).hexdigest()

    def at(self, average: float) -> Postings:
        """Return the postings for a quantised mean length, memory-mapped.

        Cost: none for the length of the build, else reading the file, or writing it, 4 bytes a
        posting, while other processes that need it wait. If it cannot be written, the postings are
        in memory.
        """
        if average == self._average:
            return self._postings
        try:
            postings = self._mapped(average)
            if postings is None:
                with FileLock(self._generation / "saturated.lock", thread_local=False):
                    postings = self._mapped(average) or self._written(average)
        except OSError as error:
            _log.warning(
                "postings of %s were saturated in the memory of this process: %s; make the folder "
                "writable, with room on its disk, to share them between processes",
                self._generation,
                error,
            )
            return self._saturated(average)
        return postings

    def _path(self, average: float) -> Path:
        return self._generation / f"saturated-{length_step(average)}-{self._digest}.bin"

    def _mapped(self, average: float) -> Postings | None:
        """Return the postings in the file of a length; None if it is missing or damaged."""
        try:
            # A plain array over the same memory: np.memmap's own indexing is several times slower.
            content = np.asarray(np.memmap(self._path(average), np.uint8, "r"))
        except (FileNotFoundError, ValueError):  # not there, or empty
            return None
        built = self._shared(self._postings)
        *ends, size = np.cumsum([array.nbytes for array in built])
        checksum = content[size:].tobytes()
        if zlib.crc32(content[:size].data).to_bytes(_CHECKSUM_BYTES) != checksum:
            return None
        entries, runs, best = (
            array.view(like.dtype).reshape(like.shape)
            for array, like in zip(np.split(content[:size], ends), built, strict=True)
        )
        return replace(self._postings, entries=entries, runs=runs, best=best)

    def _written(self, average: float) -> Postings:
        """Write and map the file of a length, under the lock; remove those of distant lengths."""
        postings = self._saturated(average)
        with replacement(self._path(average)) as fresh, fresh.open("xb") as stream:
            checksum = 0
            for array in self._shared(postings):
                content = array.reshape(-1).view(np.uint8).data
                checksum = zlib.crc32(content, checksum)
                stream.write(content)
            stream.write(checksum.to_bytes(_CHECKSUM_BYTES))
        # The mean may go back by one step, so files of adjacent steps stay.
        step = length_step(average)
        near = {
            f"saturated-{near_step}-{self._digest}.bin" for near_step in (step - 1, step, step + 1)
        }
        left = self._generation.glob(f".saturated-*.{NEW}")  # by a process that died
        for other in (*self._generation.glob("saturated-*.bin"), *left):
            if other.name not in near:
                other.unlink(missing_ok=True)
        return self._mapped(average) or postings

    def _saturated(self, average: float) -> Postings:
        norms = length_norms(self._lengths, average, k1=self._postings.k1, b=self.b)
        return self._postings.saturated(
            lambda first, after: self._forward.rows(np.arange(first, after)), norms
        )

    @staticmethod
    def _shared(postings: Postings) -> tuple[npt.NDArray[Any], ...]:
        return postings.entries, postings.runs, postings.best


_MERGE_SIZE: Final = 128
"""Documents from which a segment is kept instead of being rebuilt with every write."""


class DeltaPostings:
    """The postings of all documents in segments, saturated by a quantised mean length.

    The last segment is rebuilt with every write up to a hundred documents; others are merged in
    pairs, so their number is logarithmic. The division into segments changes no bit of any score.
    Memory: 4 bytes a posting of later documents.

    base       segment of the build
    saturated  its postings
    """

    def __init__(self, base: Segment, saturated: SaturatedPostings) -> None:
        self._saturated = saturated
        self._average = 0.0  # by which the segments are saturated
        self._kept = [base]

    def segments(
        self, forward: Forward, lengths: npt.NDArray[np.int32], latest: SparseRows, average: float
    ) -> list[Segment]:
        """Return segments of all documents.

        forward, lengths  of these documents and those of the build
        latest  counts of the last of them
        Cost: the documents after the last kept segment, and some merges; if the length has changed,
        all later documents, and `SaturatedPostings.at`.
        """
        if average != self._average:
            self._kept = [self._kept[0]._replace(postings=self._saturated.at(average))]
            self._average = average
        begin, end = self._kept[-1].after, len(lengths)
        if begin == end:
            return [*self._kept]
        is_kept = end - begin >= _MERGE_SIZE
        while is_kept and len(self._kept) > 1 and end - begin >= self._kept[-1].postings.size:
            begin = self._kept.pop().first
        is_latest = end - begin == latest.shape[0]
        rows = latest if is_latest else forward.rows(np.arange(begin, end))
        numbers, term_numbers = distinct_terms(rows.indices)
        counts = rows._replace(indices=term_numbers, shape=(end - begin, len(numbers)))
        built = self._kept[0].postings
        norms = length_norms(lengths[begin:end], average, k1=built.k1, b=self._saturated.b)
        postings = Postings.of(counts, norms, built.k1, block_bits=built.block_bits)
        segments = [*self._kept, Segment.of(begin, postings, numbers)]
        if is_kept:
            self._kept = [*segments]
        return segments


def distinct_terms(terms: Integers) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Return the distinct terms, ascending, and the index of each among them. Cost: O(V + n)."""
    present = np.zeros(terms.max(initial=-1) + 1, np.bool_)
    present[terms] = True
    numbers = np.flatnonzero(present)
    positions = np.empty(len(present), np.int32)
    positions[numbers] = np.arange(len(numbers), dtype=np.int32)
    return numbers, positions[terms]
