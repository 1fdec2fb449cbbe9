"""Ionosphere of the UCI repository: radar returns, 34 numbers and a class each."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from klsa_search.collection.lines import lines
from klsa_search.core.array_types import Matrix
from klsa_search.errors import CollectionError

ATTRIBUTES: Final = 34
CLASSES: Final = ("g", "b")


class LabelledPoints(NamedTuple):
    """Points (N, F) and the class of each."""

    values: Matrix
    classes: tuple[str, ...]


def read_ionosphere(folder: Path) -> LabelledPoints:
    """Read ionosphere.csv: a header, then 34 numbers and g (good) or b (bad) a line.

    CollectionError names the line that is none of that.
    """
    path = folder / "ionosphere.csv"
    rows, classes = [], []
    for number, line in lines(path):
        cells = line.strip().split(",")
        if number == 1 or cells == [""]:
            continue
        try:
            *row, label = cells
            rows.append([float(cell) for cell in row])
        except ValueError:
            raise CollectionError(f"{path}:{number}: a cell is no number: mend the line") from None
        if len(row) != ATTRIBUTES or label not in CLASSES or not np.isfinite(rows[-1]).all():
            raise CollectionError(
                f"{path}:{number}: not {ATTRIBUTES} finite numbers and a class, g or b: "
                "mend the line"
            )
        classes.append(label)
    if not rows:
        raise CollectionError(f"{path}: no line after the header: fetch the file again")
    return LabelledPoints(np.array(rows), tuple(classes))
