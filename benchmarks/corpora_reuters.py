"""Where Reuters-21578 lies."""

from __future__ import annotations

from pathlib import Path

from klsa_search.cli.options import datasets_homes
from klsa_search.collection import find_dataset
from klsa_search.errors import CollectionError


def reuters_folder(given: Path | None = None) -> Path:
    """Folder of the files: `given`, else below $KLSA_DATASETS or ../shared/datasets; SystemExit."""
    try:
        if given is not None:
            return find_dataset(given.name, [given.parent])
        return find_dataset("reuters21578", datasets_homes(None))
    except CollectionError as error:
        raise SystemExit(error.message) from None
