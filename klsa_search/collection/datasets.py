"""Data sets of the kernel papers, by name: where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from klsa_search.errors import CollectionError

DATASETS: Final[Mapping[str, str]] = {
    "ionosphere": "ionosphere.csv",
    "reuters21578": "reut2-*.sgm.gz",
}
"""Name of the folder → what its files are called."""


def find_dataset(name: str, data: Iterable[Path]) -> Path:
    """Return the folder of a data set: the first below `data` that holds its files.

    CollectionError says where it was looked for and what has to be there.
    """
    looked = [place / name for place in data]
    for folder in looked:
        if any(folder.glob(DATASETS[name])):
            return folder
    places = " or ".join(map(str, looked)) or "any folder, for none was named"
    raise CollectionError(
        f"the data set {name} is not in {places}: put {DATASETS[name]} there, or name the folder "
        f"that {name} lies in (--data, $KLSA_DATASETS)"
    )
