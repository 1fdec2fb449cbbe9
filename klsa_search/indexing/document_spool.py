"""Documents of a partition in a work folder, until it is built."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from klsa_search.collection.model import Document, id_hash


@dataclass
class DocumentSpool:
    """Batches of documents in a file, and their numbers in the source."""

    path: Path
    stream: IO[bytes] = field(init=False)
    batch: list[Document] = field(default_factory=list)
    ordinals: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        """Open the file."""
        self.stream = self.path.open("wb")

    def add(self, document: Document, ordinal: int) -> None:
        """Add a document to the present batch."""
        self.batch.append(document)
        self.ordinals.append(ordinal)

    def end_batch(self) -> None:
        """Write the present batch, if it has documents."""
        if self.batch:
            pickle.dump(self.batch, self.stream, pickle.HIGHEST_PROTOCOL)
            self.batch = []

    def close(self) -> None:
        """Close the file, and write the numbers of the documents to another one."""
        self.stream.close()
        np.save(ordinals_file(self.path), np.frombuffer(self.ordinals, np.int64))


def ordinals_file(documents: Path) -> Path:
    """Return the file of the numbers of documents in the source."""
    return documents.with_suffix(".npy")


def spooled(path: Path, above: int = 0) -> Iterator[Document]:
    """Yield the documents of a file whose hash is at least a limit."""
    with path.open("rb") as stream:
        while True:
            try:
                batch = pickle.load(stream)  # noqa: S301 - written by this build
            except EOFError:
                return
            yield from (document for document in batch if _sample_key(document) >= above)


def _sample_key(document: Document) -> int:
    """Return 32 bits of an ID that its partition does not depend on."""
    return id_hash(document.id) & 0xFFFFFFFF
