"""The documents of an index as they came: those of the build that still stand, then those written.

living(generation) -> Document...    in order of their positions
export(generation, file) -> int      as JSON lines, whole or not at all
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from klsa_search.collection import Document
from klsa_search.store.documents import DocumentReader
from klsa_search.store.files import sync, writable
from klsa_search.store.log import WriteLog
from klsa_search.store.names import NEW


def living(generation: Path) -> Iterator[Document]:
    """Yield the documents of a generation that were neither deleted nor replaced since.

    All of one moment, whatever is written meanwhile. IndexDamaged. Memory: the ids in the log.
    """
    log = WriteLog(generation)
    last = log.last()
    stands = {row.id: row.seq if row.document else 0 for row in log.rows(last=last)}
    with closing(DocumentReader(generation)) as reader:
        for position in range(len(reader.starts) - 1):
            [document] = reader.at([position])
            if document.id not in stands:
                yield document
    for row in log.rows(last=last):
        if row.document and stands[row.id] == row.seq:
            yield row.document


def as_line(document: Document) -> str:
    """Write a document as a line of JSON that a build reads as the same document."""
    line = {"id": document.id, "title": document.title, "text": document.text}
    metadata = {"metadata": dict(document.metadata)} if document.metadata else {}
    return json.dumps({**line, **metadata}, ensure_ascii=False, allow_nan=False) + "\n"


def export(generation: Path, file: Path) -> int:
    """Write the living documents to a file, which is replaced in one step; return their number.

    It is durable on return. StoreError where it cannot be written: then nothing is left of it.
    """
    fresh = file.with_name(f".{file.name}.{uuid4().hex}.{NEW}")  # others may write the same file
    count = 0
    with writable(file):
        try:
            with fresh.open("x", encoding="utf-8", newline="\n") as stream:
                for document in living(generation):
                    stream.write(as_line(document))
                    count += 1
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(file)
            sync(file.parent)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    return count
