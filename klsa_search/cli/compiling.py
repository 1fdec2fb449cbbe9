"""Report first-run compilation, which takes about half a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from klsa_search.compiling import watched


@dataclass
class Compiled:
    """How many functions were compiled, without those that only they call."""

    functions: int = 0


@contextmanager
def watch_compiling(begun: Callable[[str | None], None]) -> Iterator[Compiled]:
    """Call `begun` when something is compiled for the first time, with the folder that keeps it.

    Yield the number of compiled functions; functions loaded from the cache are not counted.
    """
    seen = Compiled()

    def count(folder: str | None) -> None:
        seen.functions += 1
        if seen.functions == 1:
            begun(folder)

    with watched(count):
        yield seen
