"""Arrays of a generation as memory-mapped `.npy` files."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocumentMask, Numbers, starts_of
from klsa_search.storage.current import step_for
from klsa_search.storage.files import unreadable

VOCABULARY = "vocabulary.txt"

_LINES = 2**16
"""Bytes of terms that are read at once."""

_SMALL = 2**16
"""Bytes up to which a file is read: one that is mapped keeps a file descriptor open."""

_HEADER = re.compile(
    r"\{'descr': '(?P<type>[<|]\w+)', 'fortran_order': False, "
    r"'shape': \((?P<shape>[\d, ]*)\), \}\s*"
)


def write_arrays(generation: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write each array to `<name>.npy`; OSError names the file, for example on a full disk."""
    for name, array in arrays.items():
        path = generation / f"{name}.npy"
        contiguous = np.ascontiguousarray(array)
        with _naming(path), path.open("xb") as stream:
            stream.write(array_header(contiguous.dtype, contiguous.shape))
            # Not ndarray.tofile, which np.save uses: it loses the reason for a failure.
            stream.write(contiguous.reshape(-1).view(np.uint8).data)


def write_lists(
    generation: Path,
    names: tuple[str, str],
    parts: Sequence[tuple[npt.NDArray[np.generic], Numbers]],
    live: DocumentMask,
) -> None:
    """Write the lists of live documents, one after the other, and the start of each.

    names  of the two arrays
    parts  lists of consecutive documents, and (n + 1,) the start of each
    Cost: copying them; 5 µs for each run of live documents.
    """
    sizes, first = [np.zeros(0, np.int64)], 0
    with ArrayWriter(generation, names[0], parts[0][0].dtype) as writer:
        for content, starts in parts:
            is_live = live[first : first + len(starts) - 1]
            first += len(is_live)
            edges = np.flatnonzero(np.diff(is_live, prepend=False, append=False))
            for begin, end in starts[edges].reshape(-1, 2).tolist():
                if begin < end:
                    writer.append(content[begin:end])
            sizes.append(np.diff(starts)[is_live])
    write_arrays(generation, {names[1]: starts_of(np.concatenate(sizes))})


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file name to an OSError."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


class ArrayWriter(AbstractContextManager["ArrayWriter"]):
    """Writes an array to `<name>.npy`, some rows at a time. Use as a context manager.

    columns  of a two-dimensional array; None for one dimension

    OSError names the file, for example on a full disk.
    """

    def __init__(
        self, generation: Path, name: str, kind: npt.DTypeLike, columns: int | None = None
    ) -> None:
        self._path = generation / f"{name}.npy"
        self._kind = np.dtype(kind)
        self._row = () if columns is None else (columns,)
        self._length = 0
        with _naming(self._path):
            self._stream = self._path.open("xb")
            self._stream.write(self._header())

    def append(self, piece: bytes | npt.NDArray[Any]) -> None:
        """Append rows, or their bytes."""
        content = piece if isinstance(piece, bytes) else piece.reshape(-1).data.cast("B")
        self._length += len(content) // (self._kind.itemsize * math.prod(self._row))
        with _naming(self._path):
            self._stream.write(content)

    def __exit__(self, *failure: object) -> None:
        """Write the length, and close."""
        with _naming(self._path), self._stream:
            if failure[0] is None:
                self._stream.seek(0)
                self._stream.write(self._header())

    def _header(self) -> bytes:
        return array_header(self._kind, (self._length, *self._row))


def array_header(kind: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an array file, padded so that the length can grow."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": kind.str, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


def open_array(generation: Path, name: str) -> npt.NDArray[Any]:
    """Map `<name>.npy` into memory, or read a small file; IndexDamaged if it is not an array file.

    Raise OSError if the process has too many open files. The header is not read by NumPy, which
    passes it to Python's parser: in two threads at once that fails occasionally.
    """
    path = generation / f"{name}.npy"
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size <= _SMALL:
                content = stream.read()
                kind, shape, begin = read_header(io.BytesIO(content))
                return np.frombuffer(content, kind, math.prod(shape), begin).reshape(shape)
            kind, shape, begin = read_header(stream)
        mapped = np.memmap(path, kind, "r", begin, shape, "C")
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise unreadable(path, error, step_for(path)) from error
    # A plain array over the same memory: np.memmap's own indexing is several times slower.
    return np.asarray(mapped)


def read_header(stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return dtype, shape and data offset of an array file.

    Raise ValueError or TypeError for a header that was not written here.
    """
    version = np.lib.format.read_magic(stream)
    length = int.from_bytes(stream.read(2), "little")
    header = _HEADER.fullmatch(stream.read(length).decode("latin1"))
    begin = stream.tell()
    if version != (1, 0) or header is None:
        raise ValueError("its header is invalid")
    shape = tuple(map(int, header["shape"].replace(",", " ").split()))
    return np.dtype(header["type"]), shape, begin


def has_array(generation: Path, name: str) -> bool:
    """Return whether the generation has that array."""
    return (generation / f"{name}.npy").is_file()


def write_vocabulary(generation: Path, terms: Sequence[str]) -> None:
    """Write the terms in order, one a line; no term contains a line break."""
    with (generation / VOCABULARY).open("x", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{term}\n" for term in terms)


def vocabulary_lines(generation: Path) -> Iterator[bytes]:
    """Yield the terms in order, in UTF-8; some of them are in memory, and no file stays open."""
    offset = 0
    while True:
        with (generation / VOCABULARY).open("rb") as stream:
            stream.seek(offset)
            lines = stream.readlines(_LINES)
        if not lines:
            return
        offset += sum(map(len, lines))
        yield from (line[:-1] for line in lines)


def read_vocabulary(generation: Path) -> list[str]:
    """Return the terms in order; IndexDamaged if they are not UTF-8."""
    path = generation / VOCABULARY
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, step_for(path)) from error
    return text.split("\n")[:-1]
