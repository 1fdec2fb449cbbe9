"""The process in which a service refits an index: see `klsa_search.service.refits`.

    python -m klsa_search.cli.refit_child --home HOME [--alpha 0.5 ...] NAME

It does what `klsa-index refit` does behind everything else: at low priority, the first to go where
memory runs out, and ended with its standard input, which is when the service does. How far it has
come it says on its standard output, in lines of phase, amount done and amount in all (or -).
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

import click

from klsa_search.cli.main import run
from klsa_search.cli.options import given, home_option, settings_options
from klsa_search.core.config import SearchSettings
from klsa_search.core.parallel import exit_with_parent

MODULE: Final = "klsa_search.cli.refit_child"

_NICE: Final = 10
"""It gets a tenth of a processor that others want, too."""


_OFTEN: Final = 0.2
"""Seconds between two lines of one phase."""


@click.command()
@click.argument("name")
@home_option
@settings_options(*SearchSettings.model_fields, default="as it is")
def refit(name: str, home: Path, **options: Any) -> None:
    """Rebuild an index from its stored documents."""
    from klsa_search.indexing.rewrite import refit as refit_index
    from klsa_search.storage.names import index_path

    refit_index(index_path(home, name), progress=_Telling(), **given(options)).close()


class _Telling:
    """Says how far it has come, at each phase, and now and then within."""

    def __init__(self) -> None:
        self._phase = ""
        self._told = 0.0

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Say it."""
        now = monotonic()
        if phase != self._phase or done == total or now - self._told > _OFTEN:
            self._phase, self._told = phase, now
            print(phase, done, "-" if total is None else total, flush=True)


def main() -> None:
    """Refit."""
    exit_with_parent()
    signal.signal(signal.SIGTERM, _leave)  # so that what was made is cleared away
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError):  # of Linux alone
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    run(refit)


def _leave(*_: Any) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    main()
