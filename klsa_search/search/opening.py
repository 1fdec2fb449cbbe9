"""Opening: from the folder of an index to the `Index` over its generation in use."""

from __future__ import annotations

from pathlib import Path

from klsa_search.search.index import Index
from klsa_search.store import current_generation, followed, indexes_in


def open_index(path: str | Path) -> Index:
    """Open the generation in use of the index at `<home>/<name>`, the name of one or an alias.

    IndexNotFound, IndexDamaged or FormatUnsupported. File sizes are checked each time; the sums
    of all files the first time on this machine, and whenever one of them has changed: a second a
    gigabyte, shared among the processors.

    >>> open_index("index/reports")
    <Index reports generation 000001: 6 documents>
    """
    return Index(current_generation(followed(Path(path))))


def list_indexes(home: str | Path) -> list[str]:
    """Names of the indexes of a home, sorted; none where there is no such folder.

    Cost: a look into each folder of the home. OSError for a home that cannot be read.

    >>> list_indexes("index")
    ['reports']
    """
    return [path.name for path in indexes_in(Path(home))]
