"""Files as numbered lines: gzip seen through, encodings checked, failures named."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from klsa_search.collection.intake import Cut

GZIP = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; gzip is recognised by its first two bytes, not by name."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] == GZIP:
            with gzip.GzipFile(fileobj=raw) as packed, io.BufferedReader(packed) as stream:
                yield stream
        else:
            yield raw


def lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its ending), one line in memory at a time.

    A byte-order mark is dropped. A byte that is not of the encoding becomes a lone surrogate,
    which `text_fault` names: the reader knows best how much of the record to refuse. `Cut` if
    the file cannot be opened, is UTF-16, or its gzip data ends early or is damaged.
    """
    number = 0
    try:
        with opened(path) as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    if line.startswith(UTF16_BOMS):
                        raise Cut(f"{path}:1: the file is UTF-16; convert it to UTF-8")
                    line = line.removeprefix(UTF8_BOM)
                yield number, line.decode(encoding, "surrogateescape")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Cut(
            f"{path}:{number}: the gzip data is cut short or damaged after this line "
            f"({error}); fetch or pack the file again"
        ) from None
    except OSError as error:
        raise Cut(f"{path}: cannot be read ({error.strerror or error})") from None


def head(path: Path, size: int = 65_536) -> str:
    """Return the first `size` bytes as text, for a look at the format; never fails on content."""
    try:
        with path.open("rb") as stream:
            data = stream.read(size)
    except OSError as error:
        raise Cut(f"{path}: cannot be read ({error.strerror or error})") from None
    if data.startswith(GZIP):
        try:
            # Unlike `gzip`, a decompressor gives what there is of a stream that is cut short.
            data = zlib.decompressobj(wbits=31).decompress(data, size)
        except zlib.error:
            return ""
    return data.removeprefix(UTF8_BOM).decode("utf-8", "replace")
