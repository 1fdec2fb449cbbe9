"""Build an index again, from the documents it holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Unpack

from klsa_search.analysis import trusting
from klsa_search.bars import told
from klsa_search.collection import Document, Judgement, Problems, Query
from klsa_search.config import Settings
from klsa_search.errors import StoreError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build, build_generation
from klsa_search.indexing.carrying import carried
from klsa_search.keywords import IndexSettings
from klsa_search.progress import Progress
from klsa_search.search import Index
from klsa_search.store import current_generation


class Stored:
    """The documents of an index as the collection they once were; see `Collection`."""

    format = "index"
    root = None

    def __init__(self, index: Index) -> None:
        """Take those that it has now."""
        self._index = index.pinned()
        self.name = index.manifest.source
        self.address = index.manifest.source_path
        self.problems = Problems(index.manifest.counts.skipped)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._index)

    def documents(self) -> Iterator[Document]:
        """Yield all, in their order."""
        return map(self._index.document, self._index.ids())

    def queries(self) -> list[Query]:
        """None."""
        return []

    def judgements(self) -> list[Judgement]:
        """None."""
        return []


def rebuild(
    index: Index,
    *,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Replace an index by one of the same documents and other settings; open it.

    A generation never changes, so even a new α is a new one, made by `build` like any other: what
    depends on a setting is made again, and the manifest's settings and fingerprint are those of an
    index built that way in the first place. `index` stays open, and whole until the build after
    this one is done.

    Cost: that of `build`. What is written meanwhile is carried over, as by `refit`. SettingsError;
    StoreError if the index has been replaced meanwhile, and see `carrying`.

    >>> bolder = rebuild(index, alpha=1.0)
    >>> bolder.settings.alpha
    1.0
    """
    folder = index.path.parent
    if current_generation(folder) != index.path:
        raise StoreError(
            f"{folder} has been built again since generation {index.generation} was opened: "
            "open it again and start over"
        )
    held = index.pinned()  # what others write to it meanwhile is not in it
    with told(progress) as report:
        return build_generation(
            folder,
            Stored(held),
            Settings.checked({**index.settings.model_dump(), **trusting(changes)}),
            report,
            memory_budget(memory),
            replace=True,
            carrying=partial(carried, held),
        )


def build_like(
    index: Index,
    *,
    home: str | Path,
    name: str,
    progress: Progress | bool | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Build an index of the same documents, with changes, elsewhere. Cost and errors: `build`.

    What has that name there is replaced, whatever its source.

    >>> build_like(index, home=Path("index"), name="other", k1=2.0).settings.k1
    2.0
    """
    settings = {**index.settings.model_dump(), **changes}
    return build(Stored(index), name=name, home=home, progress=progress, replace=True, **settings)
