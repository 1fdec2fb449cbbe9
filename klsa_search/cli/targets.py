"""Collections of the targets of klsa-eval, and temporary indexes of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from klsa_search.collection.model import Collection
    from klsa_search.core.parameters import RankerName
    from klsa_search.search.index import Index


class TemporaryIndexes:
    """Builds the indexes of an evaluation in a temporary folder, each once."""

    def __init__(self, home: Path, closing: ExitStack) -> None:
        self._home = home
        self._closing = closing
        self._indexes: dict[tuple[str, str, str], Index] = {}

    def index(
        self, target: str, collection: Collection, preset: str, ranker: RankerName = "klsa"
    ) -> Index:
        """Return the index of a preset; cran and cran-1837, of the same documents, share one."""
        from klsa_search.collection.public_collections import folder_name
        from klsa_search.indexing.build import build

        key = (folder_name(target), preset, ranker)
        if key not in self._indexes:
            index = build(
                collection,
                name=f"{len(self._indexes)}-{preset}",
                home=self._home,
                preset=preset,
                ranker=ranker,
            )
            self._closing.callback(index.close)
            self._indexes[key] = index
        return self._indexes[key]


@contextmanager
def temporary_indexes() -> Iterator[TemporaryIndexes]:
    """Yield temporary indexes, which are closed and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="klsa-eval-") as home, ExitStack() as closing:
        yield TemporaryIndexes(Path(home), closing)


def open_targets(targets: Sequence[str], data: Path | None) -> dict[str, Collection]:
    """Return the collections by target; two targets with the same name are wrong usage."""
    from klsa_search.collection.opening import open_collection

    collections: dict[str, Collection] = {}
    owners: dict[str, str] = {}
    for target in dict.fromkeys(targets):
        collection = open_collection(target, data=data)
        owner = owners.setdefault(collection.name, target)
        if owner != target:
            raise click.UsageError(
                f"{owner} and {target} are both named `{collection.name}`: evaluate one at a time"
            )
        collections[target] = collection
    return collections
