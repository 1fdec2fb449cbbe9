"""Opening: from the folder of an index to the `Index` over its generation in use."""

from __future__ import annotations

from pathlib import Path

from klsa_search.analysis import Tokenizer, trust
from klsa_search.errors import SettingsError
from klsa_search.search.index import Index
from klsa_search.store import current_generation, followed, indexes_in


def open_index(path: str | Path, *, tokenizer: Tokenizer | str | None = None) -> Index:
    """Open the generation in use of the index at `<home>/<name>`, the name of one or an alias.

    tokenizer  that it was built with, if any: itself, or as `module:function`. It is code that runs
               in this process, which an index cannot choose by itself; given once, it is trusted
               until the process ends

    IndexNotFound, IndexDamaged or FormatUnsupported; SettingsError for an index with a tokenizer
    that is not trusted, or with another one or none. File sizes are checked each time; the sums
    of all files the first time on this machine, and whenever one of them has changed: a second a
    gigabyte, shared among the processors.

    >>> open_index("index/reports")
    <Index reports generation 000001: 6 documents>
    """
    name = None if tokenizer is None else trust(tokenizer)
    index = Index(current_generation(followed(Path(path))))
    built = index.settings.tokenizer
    if name not in (None, built):
        index.close()
        raise SettingsError(
            f"index {index.name} was built with {built or 'no tokenizer'}, not with {name}: open "
            "it with its own, or build it again",
            field="tokenizer",
        )
    return index


def list_indexes(home: str | Path) -> list[str]:
    """Names of the indexes of a home, sorted; none where there is no such folder.

    Cost: a look into each folder of the home. OSError for a home that cannot be read.

    >>> list_indexes("index")
    ['reports']
    """
    return [path.name for path in indexes_in(Path(home))]
