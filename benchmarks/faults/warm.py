"""Imported by the process that children are forked from: everything a trial needs, compiled."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.faults import world
from benchmarks.faults.answers import answers


def _warm_up() -> None:
    with tempfile.TemporaryDirectory(prefix="klsa-faults-") as folder:
        for layout in world.LAYOUTS:
            place = world.Place(Path(folder) / layout, layout)
            place.build("old")
            answers(place.index)


_warm_up()
