"""Sums: the files of a generation against the SHA-256 that its manifest says they had when built.

Compiled code follows what arrays say as addresses, so a byte that has changed can end the
interpreter or, worse, answer wrongly. Nothing but the sum of a file finds every such byte.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from klsa_search.errors import IndexDamaged
from klsa_search.processors import processors
from klsa_search.store.current import step_for
from klsa_search.store.files import is_exhausted
from klsa_search.store.manifest import Manifest, sha256_of


def compare_sums(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of all files, on all processors; IndexDamaged names one that has changed.

    Cost: reading every file, and a second a gigabyte on one processor.
    """
    largest_first = sorted(manifest.files, key=lambda name: -manifest.files[name].bytes)

    def compare(name: str) -> None:
        compare_sum(generation / name, manifest, sha256_of)

    with ThreadPoolExecutor(processors()) as pool:
        for _ in pool.map(compare, largest_first):
            pass


def compare_sum(path: Path, manifest: Manifest, sum_of: Callable[[Path], str]) -> None:
    """Compare the sum of one file, as `sum_of` reads it; IndexDamaged.

    OSError where the process has too many files open: that says nothing of the file.
    """
    try:
        found = sum_of(path)
    except OSError as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(f"cannot read `{path}` ({error}); {step_for(path)}") from error
    if found != manifest.files[path.name].sha256:
        raise IndexDamaged(f"`{path}` has changed since it was built; {step_for(path)}")
