"""What an index holds, as the collection that it once was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from klsa_search.collection import Document, Judgement, Problems, Query
from klsa_search.config import FieldType
from klsa_search.store.manifest import Manifest


class Stored:
    """The documents of an index as the collection they once were; see `Collection`.

    manifest  facts of their source
    size      how many there are
    read      yields all, in their order
    types     of its metadata fields, which they keep; by default those that the build found
    """

    format = "index"
    root = None

    def __init__(
        self,
        manifest: Manifest,
        size: int,
        read: Callable[[], Iterator[Document]],
        types: Mapping[str, FieldType] | None = None,
    ) -> None:
        self.name = manifest.source
        self.address = manifest.source_path
        self.problems = Problems(manifest.counts.skipped)
        built = {name: column.type for name, column in manifest.fields.columns.items()}
        self.types = built if types is None else types
        self._size, self._read = size, read

    def __len__(self) -> int:
        """How many there are."""
        return self._size

    def documents(self) -> Iterator[Document]:
        """Yield all, in their order."""
        return self._read()

    def queries(self) -> list[Query]:
        """None."""
        return []

    def judgements(self) -> list[Judgement]:
        """None."""
        return []
