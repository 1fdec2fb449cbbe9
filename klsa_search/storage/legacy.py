"""Documents and settings of an index of an earlier format, for the upgrade.

format 3   documents.db, a table of whole documents
format 4   documents.npy and documents_starts.npy, as they are now
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.model import Document
from klsa_search.core.config import with_current_names
from klsa_search.errors import IndexDamaged
from klsa_search.storage.checksums import compare_checksum
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import DECODER
from klsa_search.storage.manifest import Manifest, sha256_of
from klsa_search.storage.names import MANIFEST

_TABLE = "documents.db"
_RECORDS = (_TABLE, "documents.npy", "documents_starts.npy")
_LEGACY_VALUES: Final = {
    "title_weight": 1,
    "common_weight": 1.0,
    "burstiness": 1.0,
    "hold_back": 0.0,
    "symbols": False,
}
"""Values of later settings that give the earlier behaviour."""


def legacy_settings(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of an index of an earlier format under their present names.

    Stop words were either the whole long list or none.
    """
    known = manifest.settings
    words = {True: "long", False: "none"}.get(known.get("stop_words", True))
    # Earlier formats had no tokenizers; a value here would be code to run.
    given = {**_LEGACY_VALUES, **known, "stop_words": words, "tokenizer": None}
    return with_current_names(given)


def legacy_documents(generation: Path, manifest: Manifest) -> Iterator[Document]:
    """Yield the documents of a generation of an earlier format, in order, as they were indexed.

    Their files are compared with their checksums first, and no other file is read. Raise
    IndexDamaged if they have changed since the build.
    """
    table = manifest.format_version == 3
    for name in (_TABLE,) if table else _RECORDS:
        if name not in manifest.files:
            raise IndexDamaged(
                f"`{generation / MANIFEST}` has no entry for {name}; rebuild the "
                "index from its source"
            )
        compare_checksum(generation, name, manifest, sha256_of)
    return _of_table(generation / _TABLE) if table else _of_records(generation)


def _of_records(generation: Path) -> Iterator[Document]:
    with closing(DocumentReader(generation)) as reader:
        yield from reader.live_documents()


def _of_table(path: Path) -> Iterator[Document]:
    from sqlite_utils import Database

    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            table, columns = Database(connection)["documents"], "id, title, text, metadata"
            for row in table.rows_where(select=columns, order_by="position"):
                yield Document(**row | {"metadata": DECODER.decode(row["metadata"])})
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(
            f"cannot read `{path}` ({error}); rebuild the index from its source"
        ) from error
