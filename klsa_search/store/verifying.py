"""Verify: read every file of an index and compare it with its sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from klsa_search.errors import IndexDamaged
from klsa_search.store.checked import check_again
from klsa_search.store.current import current_generation
from klsa_search.store.generations import check_sizes
from klsa_search.store.judgements import Judgements
from klsa_search.store.log import WriteLog
from klsa_search.store.manifest import Manifest, read_manifest
from klsa_search.store.marking import is_marked
from klsa_search.store.names import CURRENT, INDEX_FILES, JUDGEMENTS, MARKER, SYNONYMS
from klsa_search.store.recovery import check_current
from klsa_search.store.synonyms import read_synonyms


def verify(path: Path) -> Manifest:
    """Read every file of an index, and every write, and compare their sums.

    Of other generations than the one in use the manifests alone. Not what is made from the log and
    the build (`delta-*.npz`, `saturated-*.bin`), which is compared with its sum when it is used.
    IndexDamaged. Cost: one read of each.
    """
    verify_shared(path)
    generation = current_generation(path)
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_again(generation, manifest)
    WriteLog(generation).check()
    return manifest


def verify_shared(path: Path) -> None:
    """Read the files of an index that belong to no generation; IndexDamaged."""
    for name in INDEX_FILES:
        _CHECKS[name](path)


def _check_mark(path: Path) -> None:
    if os.path.lexists(path / MARKER) and not is_marked(path):
        raise IndexDamaged(
            f"`{path / MARKER}` has changed since it was written; remove it, and "
            "the next build will write it again"
        )


_CHECKS: Final[Mapping[str, Callable[[Path], object]]] = {
    CURRENT: check_current,
    MARKER: _check_mark,
    SYNONYMS: read_synonyms,
    JUDGEMENTS: lambda path: Judgements(path).check(),
}
