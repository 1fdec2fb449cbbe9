"""The process in which a service backs up or follows: see `klsa_search.service.replication`.

    python -m klsa_search.cli.replication_child backup TARGET --home HOME --every 60 --keep 24
    python -m klsa_search.cli.replication_child follow SOURCE --home HOME --every 5

It works at low priority until stdin is closed, as it is when the service ends. After each attempt
it writes a line to stdout: empty, or why it failed.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from klsa_search.cli.main import explain, run_child
from klsa_search.cli.options import home_option
from klsa_search.errors import KlsaError
from klsa_search.storage.backup_writer import back_up
from klsa_search.storage.follower import follow
from klsa_search.storage.repository import Repository


@click.command()
@click.argument("work", type=click.Choice(["backup", "follow"]))
@click.argument("location")
@home_option
@click.option("--every", type=float, required=True)
@click.option("--keep", type=int)
def replicate(work: str, location: str, home: Path, every: float, keep: int | None) -> None:
    """Back up to a repository, or follow one."""
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
    """Replicate."""
    run_child(replicate)


if __name__ == "__main__":
    main()
