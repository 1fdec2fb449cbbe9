"""The postings of a build, saturated by another mean length than the build's, in a shared file.

    saturated-STEP-DIGEST.bin    entries, runs and best of `Postings`, then CRC-32 of all of it
    saturated.lock               held by the process that makes one

Writes move the mean length (`features.bm25.moved_length`), and with it every saturation of the
build. They follow from the build and the length alone, so one process writes them to a file of the
generation and all processes map it, also after a restart. Like kept segments the file may be
removed at any time: a missing or damaged one is made again, by the first process that needs it,
before its next answer.
"""

from __future__ import annotations

import logging
import threading
import zlib
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from klsa_search.core.array_types import narrow_indptr
from klsa_search.core.version import __version__
from klsa_search.kernels import bm25
from klsa_search.kernels.postings import Postings
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import NEW

if TYPE_CHECKING:
    from scipy import sparse

_SUM: Final = 4
"""Bytes of the sum at the end of a file."""

_log = logging.getLogger(__name__)


class SaturatedPostings:
    """The postings of a generation by any quantised mean length; safe to share between threads.

    postings  as they were built
    forward   the terms of each document of the build
    lengths   (N,) of its documents
    """

    def __init__(
        self,
        generation: Path,
        manifest: Manifest,
        postings: Postings,
        forward: Forward,
        lengths: npt.NDArray[np.int32],
    ) -> None:
        self._generation, self._postings = generation, postings
        self._forward, self._lengths = forward, lengths
        self._b = manifest.checked_settings().b
        of = f"{__version__} {manifest.fingerprint}"
        self._digest = blake2b(of.encode(), digest_size=16).hexdigest()
        self._preparing: threading.Thread | None = None

    def at(self, average: float) -> Postings:
        """Return the postings by a quantised mean length, mapped from its file.

        Cost: reading the file; making it where it is not there, 4 bytes a posting, while other
        processes that need it wait. Where it cannot be written, the postings are in memory.
        """
        try:
            found = self._mapped(average)
            if found is None:
                with FileLock(self._generation / "saturated.lock", thread_local=False):
                    found = self._mapped(average) or self._made(average)
        except OSError as error:
            _log.warning(
                "postings of %s were saturated in the memory of this process: %s; make the folder "
                "writable, with room on its disk, to share them between processes",
                self._generation,
                error,
            )
            return self._saturated(average)
        return found

    def prepare(self, average: float) -> None:
        """Begin to make the file of a length in the background, unless it or a maker is there."""
        if self._path(average).exists() or (self._preparing and self._preparing.is_alive()):
            return
        self._preparing = threading.Thread(
            target=self._prepare, args=[average], name="saturating", daemon=True
        )
        self._preparing.start()

    def _prepare(self, average: float) -> None:
        # Without the file, `at` makes it when it is needed, and reports what is in the way.
        with (
            suppress(OSError, Timeout),
            FileLock(self._generation / "saturated.lock", timeout=0, thread_local=False),
        ):
            if self._mapped(average) is None:
                self._made(average)

    def _path(self, average: float) -> Path:
        return self._generation / f"saturated-{bm25.length_step(average)}-{self._digest}.bin"

    def _mapped(self, average: float) -> Postings | None:
        """Map the file of a length; None if it is missing or damaged."""
        try:
            # A plain array over the same memory: np.memmap's own indexing is several times slower.
            held = np.asarray(np.memmap(self._path(average), np.uint8, "r"))
        except (FileNotFoundError, ValueError):  # not there, or empty
            return None
        arrays, begin = [], 0
        for like in self._shared(self._postings):
            arrays.append(held[begin : begin + like.nbytes])
            begin += like.nbytes
        if len(held) != begin + _SUM or zlib.crc32(held[:begin].data) != int.from_bytes(
            held[begin:]
        ):
            return None
        entries, runs, best = (
            array.view(like.dtype).reshape(like.shape)
            for array, like in zip(arrays, self._shared(self._postings), strict=True)
        )
        return replace(self._postings, entries=entries, runs=runs, best=best)

    def _made(self, average: float) -> Postings:
        """Make the file of a length, under the lock, and map it; files of far lengths go."""
        path, made = self._path(average), self._saturated(average)
        fresh = path.with_name(f".{path.stem}.{NEW}")
        fresh.unlink(missing_ok=True)  # of a process that died
        try:
            with fresh.open("xb") as stream:
                sum_ = 0
                for array in self._shared(made):
                    content = array.reshape(-1).view(np.uint8).data
                    sum_ = zlib.crc32(content, sum_)
                    stream.write(content)
                stream.write(sum_.to_bytes(_SUM))
            fresh.rename(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        # The mean may go back by a step: those of the steps next to this one stay.
        step = bm25.length_step(average)
        near = {f"saturated-{each}-{self._digest}.bin" for each in (step - 1, step, step + 1)}
        for other in self._generation.glob("saturated-*.bin"):
            if other.name not in near:
                other.unlink(missing_ok=True)
        return self._mapped(average) or made

    def _saturated(self, average: float) -> Postings:
        """Saturate all postings, in memory."""
        norms = bm25.norms(self._lengths, average, k1=self._postings.k1, b=self._b)
        return self._postings.saturated(self._counts, norms)

    def _counts(self, first: int, after: int) -> sparse.csr_array:
        from scipy import sparse

        counts = self._forward.counts(np.arange(first, after))
        # Of the types that counts have elsewhere: compiled code is of one kind.
        arrays = counts.data.astype(np.int32), counts.indices, narrow_indptr(counts.indptr)
        return sparse.csr_array(arrays, shape=counts.shape)

    @staticmethod
    def _shared(postings: Postings) -> tuple[npt.NDArray[Any], ...]:
        """The arrays that hang on the mean length."""
        return postings.entries, postings.runs, postings.best
