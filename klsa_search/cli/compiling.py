"""Report first-run compilation, which takes about half a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Compiled:
    """How many functions were compiled, those that they call among them."""

    functions: int = 0


@contextmanager
def watch_compiling(begun: Callable[[str | None], None]) -> Iterator[Compiled]:
    """Call `begun` when something is compiled for the first time, with the folder that keeps it.

    Yield the number of compiled functions; functions loaded from the cache are not counted.
    """
    from numba.core import event

    seen = Compiled()

    class Listener(event.Listener):
        def on_start(self, compiling: Any) -> None:
            seen.functions += 1
            if seen.functions == 1:
                begun(compiling.data["dispatcher"].stats.cache_path)

        def on_end(self, compiling: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield seen
