"""What a generation holds, read from its documents and its log alone, whatever else is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection import Document
from klsa_search.errors import IndexDamaged
from klsa_search.store.arrays import open_array
from klsa_search.store.log import WriteLog
from klsa_search.store.manifest import Manifest, sha256_of
from klsa_search.store.names import MANIFEST
from klsa_search.store.records import Records
from klsa_search.store.sums import compare_sum

_RECORDS = ("documents", "documents_starts")


def held_documents(generation: Path, manifest: Manifest) -> Iterator[Document]:
    """Yield the documents that were neither deleted nor replaced, in order of their positions.

    Their two files are compared with their sums, and every write with its own, before the first is
    given; no other file is read. IndexDamaged, which names the file. Memory: the ids in the log.
    """
    for name in _RECORDS:
        if f"{name}.npy" not in manifest.files:
            raise IndexDamaged(
                f"{generation / MANIFEST} names no {name}.npy: build the index again from its "
                "source"
            )
        compare_sum(generation / f"{name}.npy", manifest, sha256_of)
    log = WriteLog(generation)
    log.check()
    last = log.last()
    content, starts = (open_array(generation, name) for name in _RECORDS)
    records = Records(content, starts, generation / f"{_RECORDS[0]}.npy")
    stands = {row.id: row.seq if row.document else 0 for row in log.rows(last=last)}
    for position in range(len(starts) - 1):
        document = records.document(position)
        if document.id not in stands:
            yield document
    for row in log.rows(last=last):
        if row.document and stands[row.id] == row.seq:
            yield row.document
