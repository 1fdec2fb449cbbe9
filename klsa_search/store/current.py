"""CURRENT: the one word on which generation of an index is in use.

    000003                   the generation
    sha256 5a0c...           of its manifest.json, which has the sums of all other files
    kept 000002 sha256 91...  the same of other generations that are there, for who goes back

The first release wrote the first line only. Anything else is damage, never a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from klsa_search.errors import IndexDamaged, IndexNotFound
from klsa_search.store.aliases import alias_at
from klsa_search.store.files import is_exhausted, read_regular, sync, write_fresh
from klsa_search.store.names import CURRENT, DELETED, GENERATION, MANIFEST, NEW_CURRENT

_MOST = 65_536  # bytes; ours have some hundred
_NEEDED = (MANIFEST, "documents.npy", "documents_starts.npy")  # by a repair
_KEPT = re.compile(r"kept ([0-9]{6}) sha256 ([0-9a-f]{64})\n")
_WHOLE = re.compile(
    rf"(?P<name>{GENERATION.pattern})"
    rf"(?:\n?|\nsha256 (?P<sum>[0-9a-f]{{64}})\n(?P<kept>(?:{_KEPT.pattern})*))"
)


@dataclass(frozen=True)
class Current:
    """What CURRENT says.

    generation  in use, by name
    sums        SHA-256 of the manifests of this and other generations, where they are known
    """

    generation: str
    sums: Mapping[str, str]


def read_current(path: Path) -> Current:
    """Read CURRENT of the index at `path`; IndexNotFound without one, IndexDamaged if it is none.

    OSError where the process has too many files open.
    """
    try:
        content = read_regular(path / CURRENT, _MOST)
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFound(_missing(path)) from None
    except OSError as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(
            f"{path / CURRENT} cannot be read ({error.strerror}): {next_step(path)}"
        ) from error
    found = _WHOLE.fullmatch(content.decode("ascii", "replace"))
    if found is None:
        shown = content[:40].decode("utf-8", "backslashreplace")
        raise IndexDamaged(
            f"{path / CURRENT} names no generation, it begins {shown!r}: {next_step(path)}"
        )
    sums = dict(_KEPT.findall(found["kept"] or ""))
    if found["sum"]:
        sums[found["name"]] = found["sum"]
    return Current(found["name"], sums)


def write_current(path: Path, current: Current) -> None:
    """Point CURRENT at a generation, in one step, and make that durable."""
    name, sums = current.generation, current.sums
    kept = [f"kept {other} sha256 {sums[other]}\n" for other in sorted(sums) if other != name]
    fresh = path / NEW_CURRENT
    with suppress(FileNotFoundError):
        fresh.unlink()
    write_fresh(fresh, f"{name}\nsha256 {sums[name]}\n{''.join(kept)}")
    os.replace(fresh, path / CURRENT)
    sync(path)


def current_generation(path: Path) -> Path:
    """Folder of the generation in use; IndexNotFound without one, IndexDamaged if it is gone."""
    name = read_current(path).generation
    generation = path / name
    if not generation.is_dir():
        raise IndexDamaged(
            f"{path / CURRENT} names generation {name!r}, which is not there: {next_step(path)}"
        )
    return generation


def next_step(path: Path, besides: str = "") -> str:
    """Say what mends a damaged index, for the end of a message; `besides` is what is damaged."""
    rebuild = "rebuild the index with klsa-index build"
    return f"{_back(path)}, or {rebuild}" if _can_go_back(path, besides) else rebuild


def step_for(file: Path) -> str:
    """Say what mends an index, a file of whose generation is damaged, for the end of a message.

    A repair comes first: the other ways lose what was written since the build.
    """
    index = file.parent.parent
    others = next_step(index, besides=file.parent.name)
    if file.name in _NEEDED:
        return others
    command = f"klsa-index repair {index.name} --home {index.parent}"
    return f"make it again from its documents with {command}, or else {others}"


def _missing(path: Path) -> str:
    """Say that there is no index, and how to get one, or get it back."""
    if target := alias_at(path):
        return f"{path} is an alias of {target}: name that index"
    build = f"klsa-index build SOURCE --name {path.name} --home {path.parent}"
    if _can_go_back(path) and not os.path.lexists(path / DELETED):
        return f"{path / CURRENT} is missing: {_back(path)}, or build the index with {build}"
    return f"there is no index at {path}: build one with {build}"


def _back(path: Path) -> str:
    command = f"klsa-index rollback {path.name} --home {path.parent}"
    return f"go back to a whole generation with {command}"


def _can_go_back(path: Path, besides: str = "") -> bool:
    """Say whether a generation with a manifest is there, another than `besides`."""
    try:
        with os.scandir(path) as entries:
            return any(
                GENERATION.fullmatch(entry.name)
                and entry.name != besides
                and os.path.isfile(Path(entry.path, MANIFEST))
                for entry in entries
            )
    except OSError:
        return False  # then the message has enough to say
