"""The processes in which a service refits, backs up and follows.

    python -m klsa_search.cli.children refit NAME --home HOME --settings '{"alpha": 0.5}'
    python -m klsa_search.cli.children refit NAME --home HOME --compact
    python -m klsa_search.cli.children replicate backup TARGET --home HOME --every 60 --keep 24
    python -m klsa_search.cli.children replicate follow SOURCE --home HOME --every 5

They work at low priority, are the first candidates of the out-of-memory killer, and end when stdin
is closed, as it is when the service ends. See `jobs` and `background` of `klsa_search.service` for
what they write to stdout: a refit its progress, lines of phase, done and total amount (- if
unknown); the others a line after each attempt, empty, or why it failed.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from pydantic import TypeAdapter

from klsa_search.cli.main import explain, run
from klsa_search.cli.options import embedder_option, home_option
from klsa_search.core.child_processes import exit_with_parent
from klsa_search.embedding.options import embedders_of
from klsa_search.errors import EmbedderFailed, KlsaError

_NICE: Final = 10  # niceness: about a tenth of a contended processor
_INTERVAL: Final = 0.2  # minimum seconds between two lines of the same phase


@click.group()
def children() -> None:
    """Work for a service."""


@children.command()
@click.argument("name")
@home_option
@embedder_option
@click.option("--settings", type=TypeAdapter(dict[str, Any]).validate_json, default="{}")
@click.option("--compact", is_flag=True)
def refit(
    name: str, home: Path, embedders: tuple[str, ...], settings: dict[str, Any], compact: bool
) -> None:
    """Rebuild an index from its stored documents, as `klsa-index refit` does, or compact it."""
    from klsa_search.indexing.compaction import compact as compact_index
    from klsa_search.indexing.rewrite import refit as refit_index
    from klsa_search.storage.names import index_path

    path, progress = index_path(home, name), _PrintedProgress()
    if compact:
        compact_index(path, progress=progress).close()
        return
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
        now = time.monotonic()
        if phase != self._phase or done == total or now - self._printed > _INTERVAL:
            self._phase, self._printed = phase, now
            print(phase, done, "-" if total is None else total, flush=True)


@children.command()
@click.argument("work", type=click.Choice(["backup", "follow"]))
@click.argument("location")
@home_option
@click.option("--every", type=float, required=True)
@click.option("--keep", type=int)
def replicate(work: str, location: str, home: Path, every: float, keep: int | None) -> None:
    """Back up to a repository, or follow one."""
    from klsa_search.storage.backup import back_up
    from klsa_search.storage.repository import Repository
    from klsa_search.storage.restore import follow

    repository = None
    while True:
        failure = ""
        try:
            repository = repository or Repository(location)
            if work == "follow":
                follow(repository, home)
            else:
                done = back_up(repository, home, keep)
                failure = "; ".join(f"`{name}`: {fault}" for name, fault in done.faults.items())
        except (KlsaError, OSError) as error:
            failure = explain(error)
        print(" ".join(failure.split()), flush=True)
        time.sleep(every)


def main() -> None:
    """Work until it is done, or the service ends."""
    signal.signal(signal.SIGTERM, _exit)  # an exception, so that files of a build are removed
    exit_with_parent()
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError):  # Linux only
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    run(children)


def _exit(*_: Any) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    main()
