"""Where the data sets of the kernel papers lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from klsa_search.errors import CollectionError

DATASETS: Final[Mapping[str, str]] = {
    "ionosphere": "ionosphere.csv",
    "reuters21578": "reut2-*.sgm.gz",
}
"""Name of the folder → what its files are called."""


def datasets_homes(data: Path | None) -> list[Path]:
    """Decide where data sets are looked for: only --data, where it is given.

    Else $KLSA_DATASETS, and the folder shared/datasets beside the working directory.
    """
    if data is not None:
        return [data]
    named = os.environ.get("KLSA_DATASETS")
    return [*([Path(named)] if named else []), Path.cwd().parent / "shared" / "datasets"]


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


def reuters_folder(given: Path | None = None) -> Path:
    """Folder of Reuters-21578: `given`, else where data sets are looked for; SystemExit."""
    try:
        if given is not None:
            return find_dataset(given.name, [given.parent])
        return find_dataset("reuters21578", datasets_homes(None))
    except CollectionError as error:
        raise SystemExit(error.message) from None
