"""Files as numbered lines, decompressed and decoded, with named errors."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile, ZipInfo

from klsa_search.collection.model import TruncatedFile, text_fault
from klsa_search.core.installation import require
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError, MissingExtra

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
ZSTD = b"\x28\xb5\x2f\xfd"
UTF8_BOM = b"\xef\xbb\xbf"
_MARKS: Final = {
    b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be",
    b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be",
}  # fmt: skip
"""Encodings by their byte-order marks."""
_ZEROS: Final = {b"\0\1\0\1": "utf-16-le", b"\1\0\1\0": "utf-16-be"}
"""Encodings by which of the first four bytes are 0, if the first characters are ASCII."""
NAMES: Final = {
    "big5": "Big5", "cp1250": "Windows-1250", "cp1251": "Windows-1251", "cp1252": "Windows-1252",
    "cp1253": "Windows-1253", "cp1254": "Windows-1254", "cp1255": "Windows-1255",
    "cp1256": "Windows-1256", "cp1257": "Windows-1257", "cp850": "DOS 850", "cp866": "DOS 866",
    "cp874": "Windows-874", "cp932": "Shift-JIS", "cp949": "EUC-KR", "euc_jp": "EUC-JP",
    "gb18030": "GBK", "iso8859_2": "ISO 8859-2", "iso8859_5": "ISO 8859-5",
    "iso8859_7": "ISO 8859-7", "koi8_r": "KOI8-R", "koi8_u": "KOI8-U", "mac_roman": "Mac Roman",
}  # fmt: skip
"""Names of the encodings that are detected, by codec."""

STEP: Final = "name it, as in --encoding cp1252 (in Python encoding=)"
"""Next step if an encoding is unknown."""

_OTHER: Final = "leave out --encoding, which detects it, or name another (in Python encoding=)"

LARGEST_UNPACKED: Final = 2**32
"""Limit of the decompressed size of an archive in bytes, and of a file that was compressed well."""
_GREATEST_RATIO: Final = 250  # times its size to which any file is decompressed
LONGEST_LINE: Final = 2**28
"""Limit of a line in characters: a few compressed kB may contain one of many GB."""

_DAMAGES: Final = (EOFError, gzip.BadGzipFile, zlib.error, BadZipFile, NotImplementedError)
"""Errors of damaged archives, or of a kind that is not supported."""


@contextmanager
def open_decompressed(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file for reading decompressed bytes; the first bytes give the compression.

    gzip, zstd (Python 3.14, or the extra `files`), or a zip archive of one file. TruncatedFile
    where it is decompressed to more than `LARGEST_UNPACKED` bytes, and too many times its size.
    """
    with path.open("rb") as raw:
        start = raw.peek(4)[:4]
        if start.startswith(GZIP):
            with gzip.GzipFile(fileobj=raw) as packed:
                yield io.BufferedReader(_Decompressed(packed, path))
        elif start == ZSTD:
            zstd = _zstd()
            try:
                with zstd.ZstdFile(raw) as packed:
                    yield io.BufferedReader(_Decompressed(packed, path))
            except zstd.ZstdError as error:
                raise zlib.error(str(error)) from None
        elif start == ZIP:
            with ZipFile(raw) as archive, archive.open(_only(archive, path)) as part:
                yield io.BufferedReader(_Decompressed(part, path))
        else:
            yield raw


class _Decompressed(io.RawIOBase):
    """A decompressed stream; TruncatedFile where it is too large for its file."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path = stream, path
        self._left = max(LARGEST_UNPACKED, _GREATEST_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes."""
        size: int = self._stream.readinto(buffer)
        self._left -= size
        if self._left < 0:
            raise TruncatedFile(
                f"{self._path}: is too large (unpacked more than {LARGEST_UNPACKED >> 30} GiB, and "
                f"{_GREATEST_RATIO} times its size); unpack it"
            )
        return size


@contextmanager
def open_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a file in UTF-8, whose invalid bytes become lone surrogates, or UTF-16."""
    wide = wide_encoding_of(path)
    errors = "surrogatepass" if wide else "surrogateescape"
    with (
        open_decompressed(path) as raw,
        io.TextIOWrapper(raw, wide or "utf-8-sig", errors=errors, newline="") as stream,
    ):
        yield stream


@contextmanager
def translate_read_errors(path: Path, line: Callable[[], int] = lambda: 1) -> Iterator[None]:
    """Raise TruncatedFile for errors of reading or decompressing a file."""
    try:
        yield
    except _DAMAGES as error:
        kind = _kind(path)
        raise TruncatedFile(
            f"{path}:{line()}: the {kind} data is cut short or damaged after this line "
            f"({error}); fetch or pack the file again"
        ) from None
    except UnicodeError as error:
        raise TruncatedFile(f"{path}:{line()}: cannot be decoded ({error}); correct it") from None
    except RuntimeError as error:  # of zipfile if a password is needed
        if _kind(path) != "zip":
            raise
        raise TruncatedFile(f"{path}: cannot be unpacked ({error})") from None
    except OSError as error:
        raise TruncatedFile(f"{path}: cannot be read ({error.strerror or error})") from None


def lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its ending), one line in memory at a time.

    encoding  unless the file begins like UTF-16
    Byte-order marks at the start of lines are dropped. An invalid byte becomes a lone surrogate,
    which `text_fault` reports, so that the reader decides how much to refuse. TruncatedFile if the
    file cannot be opened, has a line of more than `LONGEST_LINE` characters, is invalid UTF-16, or
    is compressed and damaged.
    """
    yield from lines_in(path, wide_encoding_of(path) or encoding, invalid="surrogateescape")


def checked_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield ("file:line", line) of a file that is read whole or not at all; CollectionError."""
    for number, line in lines(path):
        if fault := text_fault(line):
            raise CollectionError(f"{path}:{number}: the line {fault}; correct it")
        yield f"{path}:{number}", line


def lines_in(path: Path, encoding: str, *, invalid: str = "strict") -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line) in an encoding; in UTF-16, half a character is a surrogate.

    invalid  how `bytes.decode` handles invalid bytes of other encodings
    """
    number = 0
    errors = "surrogatepass" if encoding in _MARKS.values() else invalid
    with (
        translate_read_errors(path, lambda: number),
        open_decompressed(path) as raw,
        io.TextIOWrapper(raw, encoding, errors=errors, newline="\n") as stream,
    ):
        # A line that is too long is read only as far as needed to detect it.
        read = partial(stream.readline, LONGEST_LINE + 1)
        try:
            for number, line in enumerate(iter(read, ""), start=1):
                if len(line) > LONGEST_LINE:
                    raise TruncatedFile(
                        f"{path}:{number}: the line is too large (more than {LONGEST_LINE >> 20} "
                        "MiB); see whether the file is what its name says"
                    )
                yield number, line.lstrip("\ufeff")  # also of a file appended to another
        except UnicodeError as error:
            if isinstance(error, UnicodeDecodeError):  # which is of a block of lines
                number += error.object[: error.start].count(b"\n")
            step = STEP if encoding in _MARKS.values() else _OTHER
            raise invalid_encoding(path, number + 1, encoding, error, step) from None


def invalid_encoding(
    path: Path, number: int, encoding: str, error: UnicodeError, step: str = STEP
) -> TruncatedFile:
    """Return the error for a line that an encoding does not fit."""
    name = name_of_encoding(encoding)
    reason = error.reason if isinstance(error, UnicodeDecodeError) else error
    return TruncatedFile(f"{path}:{number}: invalid {name} ({reason}); correct it, or {step}")


def read_decompressed(path: Path) -> bytes:
    """Return all bytes of a file, decompressed; TruncatedFile as `lines`."""
    with translate_read_errors(path), open_decompressed(path) as stream:
        return stream.read()


def head(path: Path, size: int = 65_536) -> str:
    """Return the first `size` bytes as text, for format detection; errors as `head_bytes`."""
    return decoded_head(head_bytes(path, size))


def decoded_head(data: bytes, encoding: str | None = None) -> str:
    """Return the start of a file in UTF-8, UTF-16 or a named encoding as text, and never fail."""
    encoding = encoding or wide_encoding(data) or "utf-8"
    return data.decode(encoding, "replace").lstrip("\ufeff")


def wide_encoding(data: bytes) -> str | None:
    r"""Return the codec of UTF-16 or UTF-32 if the start of a file is that, else None.

    UTF-32 needs a byte-order mark; in UTF-16 without one the first characters must be ASCII.

    >>> wide_encoding("id,café".encode("utf-16-le")), wide_encoding(b"a\0\0\0bcd and so on")
    ('utf-16-le', None)
    """
    marked = _MARKS.get(data[:4]) or _MARKS.get(data[:2])
    return marked or _ZEROS.get(bytes(byte == 0 for byte in data[:4]))


def wide_encoding_of(path: Path) -> str | None:
    """Return the codec of UTF-16 or UTF-32 if a file begins like that: see `wide_encoding`."""
    return wide_encoding(head_bytes(path, 4))


def name_of_encoding(codec: str) -> str:
    """Return the name of an encoding as people write it.

    >>> name_of_encoding("utf-16-le"), name_of_encoding("cp932"), name_of_encoding("koi8_t")
    ('UTF-16', 'Shift-JIS', 'koi8_t')
    """
    return codec[:6].upper() if codec in _MARKS.values() else NAMES.get(codec, codec)


def head_bytes(path: Path, size: int) -> bytes:
    """Return the first `size` bytes of a file, decompressed, or fewer if it is damaged.

    TruncatedFile if it cannot be opened.
    """
    data = b""
    try:
        with open_decompressed(path) as stream:
            # Unlike `read`, this returns the data before a place that is cut short.
            while len(data) < size and (more := stream.read1(size - len(data))):
                data += more
    except (*_DAMAGES, RuntimeError, TruncatedFile, MissingExtra):
        pass
    except OSError as error:
        raise TruncatedFile(f"{path}: cannot be read ({error.strerror or error})") from None
    return data


def _only(archive: ZipFile, path: Path) -> ZipInfo:
    files = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(files) != 1:
        raise TruncatedFile(
            f"{path}: an archive of {counted(len(files), 'file')}; unpack it, and read its files "
            "one by one or their folder"
        )
    return files[0]


def _kind(path: Path) -> str:
    with path.open("rb") as raw:
        start = raw.read(4)
    return "gzip" if start.startswith(GZIP) else "zstd" if start == ZSTD else "zip"


def _zstd() -> Any:
    """Return the zstd module of Python 3.14, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        require("files")
        from backports import zstd
    return zstd
