"""Imported by the process that children are forked from: everything a trial needs, loaded."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.faults import partition_kills, world, written
from klsa_search import open_index


def _warm_up() -> None:
    with tempfile.TemporaryDirectory(prefix="klsa-faults-") as folder:
        for spectral in world.SPECTRAL:
            place = world.Place(Path(folder) / spectral, spectral)
            place.build("old")
            world.answers(place.index)
        home = Path(folder) / "written"
        written.build_version(home, "old")
        with closing(open_index(home / written.NAME)) as index:
            for kind, what in (("add", {"0": "w0 late"}), ("delete", ["1"]), ("undo", None)):
                written.do(index, kind, what)
            written.seen(index)
        home = Path(folder) / "partitions"
        partition_kills.build_index(home)
        partition_kills.look(home / partition_kills.NAME)


_warm_up()
