"""The process in which a service refits an index: see `klsa_search.service.jobs`.

    python -m klsa_search.cli.refit_child --home HOME [--alpha 0.5 ...] NAME

It does the same as `klsa-index refit`, at low priority and as first candidate of the out-of-memory
killer, and ends when stdin is closed, as it is when the service ends. It writes its progress to
stdout: lines of phase, done and total amount (- if unknown).
"""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

import click
from pydantic import TypeAdapter

from klsa_search.cli.main import run_child
from klsa_search.cli.options import embedder_option, home_option
from klsa_search.embedding.opening import embedders_of
from klsa_search.errors import EmbedderFailed

_INTERVAL: Final = 0.2
"""Minimum seconds between two lines of the same phase."""


@click.command()
@click.argument("name")
@home_option
@embedder_option
@click.option("--settings", type=TypeAdapter(dict[str, Any]).validate_json, default="{}")
def refit(name: str, home: Path, embedders: tuple[str, ...], settings: dict[str, Any]) -> None:
    """Rebuild an index from its stored documents."""
    from klsa_search.indexing.rewrite import refit as refit_index
    from klsa_search.storage.names import index_path

    path, progress = index_path(home, name), _PrintedProgress()
    try:
        index = refit_index(path, embedders=embedders_of(embedders), progress=progress, **settings)
    except EmbedderFailed as failure:
        logging.getLogger(__name__).warning("refit without new vectors: %s", failure.message)
        index = refit_index(path, progress=progress, **settings)
    index.close()


class _PrintedProgress:
    """Prints the progress at the start and end of each phase, and at intervals."""

    def __init__(self) -> None:
        self._phase = ""
        self._printed = 0.0  # in seconds of `monotonic`

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Print a line, unless the last one of this phase was just printed."""
        now = monotonic()
        if phase != self._phase or done == total or now - self._printed > _INTERVAL:
            self._phase, self._printed = phase, now
            print(phase, done, "-" if total is None else total, flush=True)


def main() -> None:
    """Refit."""
    signal.signal(signal.SIGTERM, _exit)  # an exception, so that files of the build are removed
    with suppress(OSError):  # Linux only
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    run_child(refit)


def _exit(*_: Any) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    main()
