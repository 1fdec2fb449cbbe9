"""Generations whose sums were compared on this machine, so that each is read through once only.

What is remembered of a generation tells its files from any others: device, inode, size and both
times of each, and the sums they had. It is kept in the user's cache folder; where that cannot be
written to, or was emptied, sums are compared again.
"""

from __future__ import annotations

import hashlib
import json
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
            raise IndexDamaged(f"{path} is no file of this index: move it away")
    if _remembered().get(_name(generation)) != _mark(generation, manifest):
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
    if _name(generation) in _remembered():
        _remember(generation, None)


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


def _file() -> Path:
    return user_cache_path("klsa-search") / "checked.json"


def _remembered() -> dict[str, str]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # none yet, or not ours
        return {}
    return found if isinstance(found, dict) else {}


def _remember(generation: Path, mark: str | None) -> None:
    """Write it down, and forget generations that are gone; None forgets this one."""
    known = {name: each for name, each in _remembered().items() if Path(name).is_dir()}
    known.pop(_name(generation), None)
    if mark is not None:
        known[_name(generation)] = mark
    file = _file()
    fresh = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(known, indent=0, sort_keys=True), encoding="utf-8")
        fresh.replace(file)  # in one step: another process reads the former or this
    except OSError:
        with suppress(OSError):
            fresh.unlink()
