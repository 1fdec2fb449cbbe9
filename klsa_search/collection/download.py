"""Downloads of the public test collections, with checksums and safe unpacking."""

from __future__ import annotations

import http.client
import os
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from klsa_search.collection.public_collections import (
    PUBLIC,
    PublicCollection,
    folder_name,
    text_sum,
)
from klsa_search.core.progress import Progress
from klsa_search.errors import FetchError

BASE_URL = "https://ir.dcs.gla.ac.uk/resources/test_collections"
TIMEOUT = 30  # seconds without data
LARGEST = 64 * 2**20  # bytes of an archive and of each file in it; the real ones are below 3 MB
CHUNK = 65_536


def fetch(
    names: Iterable[str],
    home: str | os.PathLike[str],
    *,
    base_url: str = BASE_URL,
    progress: Progress | None = None,
) -> list[Path]:
    """Download collections into `home/<name>` and return these folders in order.

    names     names of collections: cran, cisi, cacm, med (cran-1837 is cran)
    base_url  URL of the folder with `cran/cran.tar.gz` and the others
    progress  called with (name, bytes done, total bytes or None)

    A complete folder is not downloaded again. Only files with the right checksum replace others, so
    a failure changes nothing. FetchError names the URL and the manual steps.

    >>> fetch(["trec-8"], "data")
    Traceback (most recent call last):
    klsa_search.errors.FetchError: trec-8 cannot be fetched; there are: cacm, cisi, cran, med
    """
    home = Path(home)
    wanted = list(dict.fromkeys(map(folder_name, names)))
    for name in wanted:
        if name not in PUBLIC:
            raise FetchError(
                f"unknown collection {name!r}; the collections are: {', '.join(PUBLIC)}",
                field="names",
            )
    for name in wanted:
        if _wrong(PUBLIC[name], home / name) is not None:
            _install(name, home / name, f"{base_url.rstrip('/')}/{PUBLIC[name].archive}", progress)
    return [home / name for name in wanted]


def _install(name: str, target: Path, url: str, progress: Progress | None) -> None:
    public = PUBLIC[name]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".fetch-{name}-", dir=target.parent) as temporary:
            archive, unpacked = Path(temporary, "archive"), Path(temporary, name)
            unpacked.mkdir()
            _download(
                url, archive, target, lambda done, all_: progress and progress(name, done, all_)
            )
            _unpack(archive, unpacked, public, url)
            wrong = _wrong(public, unpacked)
            if wrong is not None:
                raise FetchError(
                    f"{url} is not the expected archive ({wrong}), and nothing was "
                    f"kept; put the right files into `{target}` yourself"
                )
            if not target.exists():
                unpacked.rename(target)
                return
            for file in sorted(public.sums):
                os.replace(unpacked / file, target / file)
    except OSError as error:
        raise FetchError(
            f"cannot write `{target}` ({error.strerror or error}); free space, or choose another "
            "folder"
        ) from None


def _download(
    url: str, path: Path, target: Path, progress: Callable[[int, int | None], object]
) -> None:
    done, expected = 0, None
    with path.open("wb") as stream:
        for chunk, expected in _chunks(url, target):
            done += len(chunk)
            if done > LARGEST:
                raise FetchError(f"{url} is larger than {LARGEST:,} bytes: not the archive")
            stream.write(chunk)
            progress(done, expected)
    if expected is not None and done != expected:
        raise FetchError(
            f"the download of {url} ended after {done:,} of {expected:,} bytes; try again"
        )


def _chunks(url: str, target: Path) -> Iterator[tuple[bytes, int | None]]:
    """Yield the content of a URL, with the bytes of all of it if they are known; FetchError."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - sums are checked
            length = answer.headers.get("Content-Length")
            expected = int(length) if length and length.isdecimal() else None
            while chunk := answer.read(CHUNK):
                yield chunk, expected
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchError(
            f"cannot download {url} ({reason}); check the network and try again, "
            f"or download it yourself and unpack it into `{target}`"
        ) from None


def _unpack(archive: Path, folder: Path, public: PublicCollection, url: str) -> None:
    """Copy the needed files out of the archive, under fixed names.

    Member names never become paths. An archive with a link, a device, or a name outside its folder
    is refused nevertheless.
    """
    names = {name.lower(): name for name in public.sums} | dict(public.aliases)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                member_path = PurePosixPath(member.name)
                if member_path.is_absolute() or ".." in member_path.parts or "\\" in member.name:
                    raise FetchError(
                        f"{url} contains an unsafe name, {member.name!r}, and was refused"
                    )
                if not (member.isreg() or member.isdir()):
                    raise FetchError(
                        f"{url} contains a link or device, {member.name!r}, and was refused"
                    )
                if member.size > LARGEST:
                    raise FetchError(
                        f"{url} contains a file of {member.size:,} bytes, and was refused"
                    )
                wanted = names.get(member_path.name.lower())
                content = tar.extractfile(member) if wanted and member.isreg() else None
                if wanted and content:
                    (folder / wanted).write_bytes(content.read())
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk; those of the archive have no number
        # For a file that is not an archive, tarfile adds one line per compression it has tried.
        reason = str(error).partition("\n")[0].rstrip(":")
        raise FetchError(f"{url} is not a complete tar archive ({reason}); try again") from None


def _wrong(public: PublicCollection, folder: Path) -> str | None:
    """Return which needed file is missing or changed; None if all are valid."""
    for name, expected in sorted(public.sums.items()):
        if not (folder / name).is_file():
            return f"{name} is missing"
        if text_sum(folder / name) != expected:
            return f"the sum of {name} is wrong"
    return None
