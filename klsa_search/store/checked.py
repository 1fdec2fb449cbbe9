"""Generations whose sums were compared on this machine, so that each is read through once only.

What is remembered of a generation identifies its files: device, inode, size and both
times of each, and the sums they had. It is kept in the user's cache folder; where that cannot be
written to, or was emptied, sums are compared again.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

from klsa_search.errors import IndexDamaged
from klsa_search.store.manifest import Manifest
from klsa_search.store.sums import compare_sums


def check_once(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of a generation unless that was done before, with these very files.

    IndexDamaged for a file that has changed since it was built, or that does not belong there.
    Cost: a look at each file; the first time, or after any change, that of `compare_sums`.
    """
    for path in generation.glob("*.npy"):
        if path.name not in manifest.files:
            raise IndexDamaged(f"`{path}` does not belong to this index; move it away")
    if _remembered(generation) != _mark(generation, manifest):
        check_again(generation, manifest)


def check_again(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of a generation whatever is remembered; IndexDamaged. See `compare_sums`."""
    mark = _mark(generation, manifest)
    try:
        compare_sums(generation, manifest)
    except IndexDamaged:
        forget(generation)
        raise
    _remember(generation, mark)


def note_checked(generation: Path, manifest: Manifest) -> None:
    """Remember a generation whose sums were made from these files just now."""
    _remember(generation, _mark(generation, manifest))


def forget(generation: Path) -> None:
    """Have the sums compared at the next opening: damage was found."""
    with suppress(OSError):  # none yet, or a cache that cannot be written to
        _file(generation).unlink()


def _mark(generation: Path, manifest: Manifest) -> str:
    digest = hashlib.sha256()
    for name, entry in sorted(manifest.files.items()):
        file = (generation / name).stat()
        times = file.st_mtime_ns, file.st_ctime_ns
        said = (name, entry.sha256, file.st_dev, file.st_ino, file.st_size, *times)
        digest.update(repr(said).encode())
    return digest.hexdigest()


def _name(generation: Path) -> str:
    return os.path.realpath(generation)


def _folder() -> Path:
    return user_cache_path("klsa-search") / "checked"


def _file(generation: Path) -> Path:
    """A file for each generation, so that processes do not write over what others remember."""
    return _folder() / hashlib.sha256(os.fsencode(_name(generation))).hexdigest()


def _remembered(generation: Path) -> str | None:
    try:
        mark, name = os.fsdecode(_file(generation).read_bytes()).split("\n", 1)
    except (OSError, ValueError):  # none yet, or not ours
        return None
    return mark if name == _name(generation) else None


def _remember(generation: Path, mark: str) -> None:
    """Write it down, and forget generations that are gone."""
    file = _file(generation)
    fresh = file.with_name(f"{uuid.uuid4().hex}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _forget_gone()
        fresh.write_bytes(os.fsencode(f"{mark}\n{_name(generation)}"))
        fresh.replace(file)  # in one step: another process reads the former or this
    except OSError:
        with suppress(OSError):
            fresh.unlink()


def _forget_gone() -> None:
    for file in _folder().iterdir():
        with suppress(OSError):  # forgotten by another process, or nothing that we wrote
            if file.suffix != ".new" and not os.path.isdir(file.read_bytes().partition(b"\n")[2]):
                file.unlink()
