"""CURRENT: the file that names the generation in use.

    000003                   the generation
    sha256 5a0c...           of its manifest.json, which has the checksums of all other files
    kept 000002 sha256 91...  the same of other generations that remain, for a rollback

Any other content is damage and never used as a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from klsa_search.core.wording import suggestion
from klsa_search.errors import IndexDamaged, IndexNotFound, PartitionsUnsupported
from klsa_search.storage import names
from klsa_search.storage.aliases import alias_at
from klsa_search.storage.files import read_regular, replace_file, unreadable

_MAX_BYTES = 65_536  # a valid file has some hundred
_KEPT_SUM = re.compile(r"kept ([0-9]{6}) sha256 ([0-9a-f]{64})\n")
_CONTENT = re.compile(
    rf"(?P<name>{names.GENERATION.pattern})\nsha256 (?P<sum>[0-9a-f]{{64}})\n"
    rf"(?P<kept>(?:{_KEPT_SUM.pattern})*)"
)


@dataclass(frozen=True)
class Current:
    """Content of CURRENT.

    generation  name of the generation in use
    sums        SHA-256 of the manifests of this and other generations
    """

    generation: str
    sums: Mapping[str, str]


def read_current(path: Path) -> Current:
    """Read CURRENT of the index at `path`; IndexNotFound if missing, IndexDamaged if invalid.

    Raise OSError if the process has too many open files.
    """
    try:
        content = read_regular(path / names.CURRENT, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if names.index_with(path) != path:
            if _has_generation(path):
                missing = f"{path / names.CURRENT} is missing: {repair_step(path)}"
                raise IndexDamaged(missing) from None
            step = last_resort(path.parent) if path.name[-1].isdigit() else repair_step(path)
            raise IndexDamaged(f"partition `{path}` is missing; {step}") from None
        raise IndexNotFound(_missing(path)) from None
    except OSError as error:
        raise unreadable(path / names.CURRENT, error, repair_step(path)) from error
    match = _CONTENT.fullmatch(content.decode("ascii", "replace"))
    sums = dict(_KEPT_SUM.findall(match["kept"])) if match else {}
    if match is None or match["name"] in sums:
        shown = content[:40].decode("utf-8", "backslashreplace")
        raise IndexDamaged(
            f"`{path / names.CURRENT}` is damaged, it begins with {shown!r}; {repair_step(path)}"
        )
    return Current(match["name"], sums | {match["name"]: match["sum"]})


def write_current(path: Path, current: Current) -> None:
    """Point CURRENT at a generation, atomically and durably."""
    name, sums = current.generation, current.sums
    kept = [f"kept {other} sha256 {sums[other]}\n" for other in sorted(sums) if other != name]
    replace_file(path / names.CURRENT, f"{name}\nsha256 {sums[name]}\n{''.join(kept)}")


def current_build(path: Path) -> Path:
    """Return the folder of the generation in use, which may have partitions.

    IndexNotFound, IndexDamaged if it is gone.
    """
    name = read_current(path).generation
    generation = path / name
    if not generation.is_dir():
        raise IndexDamaged(
            f"`{path / names.CURRENT}` names generation {name!r}, which does not exist; "
            f"{repair_step(path)}"
        )
    return generation


def has_partitions(generation: Path) -> bool:
    """Return whether the documents of a generation are in partitions. Cost: 2 µs."""
    return os.path.isfile(generation / names.PARTITIONS)


def current_generation(path: Path) -> Path:
    """Return the folder of the generation in use, which has documents: see `current_build`.

    PartitionsUnsupported for an index in partitions.
    """
    generation = current_build(path)
    if has_partitions(generation):
        raise partitions_error(path.name)
    return generation


def partitions_error(index: str) -> PartitionsUnsupported:
    """Return the error for a call that an index in partitions does not support."""
    return PartitionsUnsupported(
        f"index `{index}` has partitions, which do not support this; open it again if it was "
        "divided meanwhile, or build it with one partition"
    )


def repair_step(path: Path) -> str:
    """Return the next step for a damaged index, for the end of a message.

    A repair keeps what was written since the build; a rollback or a new build would lose it. It is
    one of all partitions.
    """
    path = names.index_with(path)
    return f"run `klsa-index repair {path.name} --home {path.parent}`, which keeps all writes"


def last_resort(path: Path) -> str:
    """Return the next step for an index that cannot be repaired, for the end of a message."""
    path = names.index_with(path)
    export = f"`klsa-index dump {path.name} FILE --home {path.parent}`"
    return f"restore a backup, or save all readable documents with {export}"


def step_for(file: Path) -> str:
    """Return the next step for a damaged file of a generation. See `repair_step`."""
    return repair_step(names.index_of(file.parent))


def changed_file_error(file: Path) -> IndexDamaged:
    """Return the error that a file of a generation has changed since the build."""
    return IndexDamaged(f"`{file}` has changed since it was built; {step_for(file)}")


def _missing(path: Path) -> str:
    """Return the message that there is no index, with the next step."""
    if target := alias_at(path):
        return f"`{path}` is an alias of `{target}`; name that index"
    again = f"`klsa-index delete-index {path.name} --home {path.parent}`"
    if os.path.lexists(path / names.DELETED):
        return f"a deletion of `{path}` was interrupted; finish it with {again}"
    if _has_generation(path):
        return f"{path / names.CURRENT} is missing: {repair_step(path)}"
    # A process may have died before it wrote a file.
    if os.path.lexists(path / names.MARKER) or (path.is_dir() and _entries(path) <= {*names.LOCKS}):
        return (
            f"{path} is unfinished: a build or restore of it is running or was interrupted; run it "
            f"again, or remove what it left with {again}"
        )
    if names.is_built(in_home := names.index_directory() / path):
        return f"no index at `{path}`; there is one at `{in_home}`"
    if indexes := _indexes_in(path):
        paths = ", ".join(f"`{path / name}`" for name in indexes)
        return f"`{path}` is an index directory; open one of its indexes: {paths}"
    near = suggestion(path.name, _indexes_in(path.parent))
    build = f"klsa-index build SOURCE --name {path.name} --home {path.parent}"
    return f"no index at `{path}`; {near}build one with `{build}`"


def _entries(folder: Path) -> set[str]:
    """Return the names of the entries of a folder; none if it cannot be read."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()  # messages are useful without them


def _indexes_in(home: Path) -> list[str]:
    return sorted(name for name in _entries(home) if names.is_built(home / name))


def _has_generation(path: Path) -> bool:
    generations = filter(names.GENERATION.fullmatch, _entries(path))
    return any((path / name / names.MANIFEST).is_file() for name in generations)
