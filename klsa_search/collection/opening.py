"""`open_collection`: opens paths, named collections and Python objects as a collection."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, Unpack, cast

from klsa_search.collection import irds, mappings, tables
from klsa_search.collection.detection import detect_format
from klsa_search.collection.folder import Selection
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Row
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.paths import (
    READERS,
    one_file,
    open_path,
    refuse_encoding,
    smart_collection,
)
from klsa_search.collection.public_collections import (
    COLLECTIONS,
    PYTHON_DOCS,
    collection_directories,
    find,
    python_documents,
    standard_library,
)
from klsa_search.collection.reading_options import Folders, PathLike, Reading, ReadingOptions
from klsa_search.errors import CollectionError

_ROWS: Final = Path("documents")  # in messages


def open_collection(
    source: PathLike | BinaryIO | Iterable[Row] | Mapping[str, Any], **reading: Unpack[Reading]
) -> OpenedCollection:
    """Open a source and detect its format; documents are read on demand.

    source    a file or folder; one of `COLLECTIONS`; an iterable of documents or mappings with
              `id`, `title`, `text` (an iterator can be read once only), or objects with such
              attributes; a data frame of pandas or polars, or a table of PyArrow, with such
              columns; a data set of ir_datasets or another object with `docs_iter`, or
              "irds:NAME" (extra `irds`); a table or query of a SQLite database,
              "sqlite:FILE?table=NAME" or "sqlite:FILE?query=SELECT ..."; or a stream of bytes in
              one of the file formats, which is copied to a temporary file. An iterable may also
              have texts, which are numbered, or tuples of an ID and a text, or of ID, title and
              text; a mapping has texts or mappings by ID, or columns by name
    format    one of `FORMATS`; by default detected from the content
    on_error  "stop" at the first bad record, or "skip" and count it in `problems`; queries and
              judgements are always strict
    data      folder or folders in which to look for named collections; by default
              `$KLSA_COLLECTIONS` and the user's cache, in this order
    follow_links
              follow symbolic links in a folder, also to files outside; the source itself may
              always be a link
    exclude   patterns of files and folders below a folder or in an archive that are not read, as in
              a `.gitignore` file: ["*.log", "drafts/"]. `.gitignore` files in the folder are
              followed, too; "!*" reads what they and `DEPENDENCIES` leave out
    columns   columns of a table, JSON or Python objects for "id", "title" and "text"; several
              texts are joined: {"id": "ticket", "text": ["body", "notes"]}. None stands for no
              column, even if one has the usual name: {"title": None}
    sections  make one document of each section, page or chapter of a file
    encoding  of CSV, and of texts, HTML and mail that declare none, such as "cp1251" or
              "shift_jis"; by default UTF-8, UTF-16 or detected

    A string that is the name of a collection means the collection, even if there is a file of that
    name: write `./cran` for the file. Memory: one document, and the set of all IDs.
    CollectionError if the source does not exist or its format is unknown.

    >>> collection = open_collection("reports.jsonl")
    >>> collection.name, collection.format
    ('reports.jsonl', 'jsonl')
    >>> [document.id for document in collection.documents()][:2]
    ['heat', 'pump']
    >>> "cran" in COLLECTIONS, "jsonl" in FORMATS
    (True, True)
    """
    return _opened(source, ReadingOptions.checked(reading))


def _opened(source: Any, options: ReadingOptions) -> OpenedCollection:
    if isinstance(source, str) and source.startswith(irds.PREFIX):
        return irds.collection(irds.load(source.removeprefix(irds.PREFIX)), options)
    if isinstance(source, str) and source.startswith(tables.PREFIX):
        return tables.database_collection(source, options)
    if hasattr(source, "docs_iter"):
        return irds.collection(source, options)
    for method in ("collect", "read_all", "to_pylist"):  # lazy frames of Polars, tables of PyArrow
        source = getattr(source, method)() if hasattr(source, method) else source
    if _is_frame(source):
        return OpenedCollection(
            "documents", "records", options, lambda intake: _records(_frame_rows(source), intake)
        )
    if isinstance(source, io.IOBase):
        return _stream(cast(BinaryIO, source), options)
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, Mapping):
            source = mappings.records_by_id(source)
        if not isinstance(source, Iterable):
            raise CollectionError(
                f"a {type(source).__name__} is not a source; give a path, one of "
                f"{', '.join(COLLECTIONS)}, or an iterable of documents",
                field="source",
            )
        read = partial(_records, source)
        return OpenedCollection("documents", "records", options, read)
    if source == PYTHON_DOCS:
        return _python_docs(options)
    if source in COLLECTIONS:
        path = find(source, _folders(options.data))
        return smart_collection(source, path, options, Selection(follow_links=True), target=source)
    path = Path(source)
    if not path.exists():
        raise CollectionError(
            f"{path}: no such file, folder or collection; the collections are: "
            f"{', '.join(COLLECTIONS)}"
        )
    return open_path(path, options)


def _stream(source: BinaryIO, options: ReadingOptions) -> OpenedCollection:
    """Open a stream by copying it to a temporary file, because format detection reads it first."""
    folder = TemporaryDirectory(prefix="klsa-stream-")
    path = Path(folder.name) / "stdin"
    with path.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    kind = options.format or detect_format(path)
    if kind not in READERS:
        raise CollectionError(
            f"a stream cannot be read as {kind}; choose one of {', '.join(READERS)}",
            field="format",
        )
    refuse_encoding(options.encoding, kind, "stdin")
    documents = partial(one_file, READERS[kind], path)
    return OpenedCollection(
        "stdin",
        kind,
        options,
        documents,
        holding=folder,
    )


def _python_docs(options: ReadingOptions) -> OpenedCollection:
    root = standard_library()
    if not root.is_dir():
        raise CollectionError(
            f"{PYTHON_DOCS}: no source of the standard library at `{root}`; name a "
            "file or folder instead"
        )
    return OpenedCollection(
        PYTHON_DOCS,
        PYTHON_DOCS,
        options,
        lambda _: python_documents(root),
        root=root,
    )


def _records(rows: Iterable[Any], intake: Intake) -> Iterator[Document]:
    return intake.documents(_ROWS, _read_rows(rows, intake))


def _read_rows(
    rows: Iterable[Any], intake: Intake
) -> Iterator[tuple[str, Mapping[str, Any] | Document]]:
    """Yield the rows of a Python program as documents or mappings, with their origins."""
    for number, row in enumerate(rows, start=1):
        origin = f"document {number}"
        if isinstance(row, Document):
            intake.without_columns()
            yield origin, row if row.origin else replace(row, origin=origin)
            continue
        try:
            record = mappings.record_of(row)
        except RecursionError:
            intake.refuse(f"{origin}: is not JSON (nested too deeply); flatten it")
            continue
        name = next((name for name in record or () if not isinstance(name, str)), None)
        if name is not None:
            intake.refuse(
                f"{origin}: the field {name!r} is named by a value of type {type(name).__name__}; "
                "name the columns, as with data.rename(columns=str)"
            )
        elif record is not None:
            yield origin, record
        else:
            intake.refuse(
                f"{origin}: is of type {type(row).__name__}; give a text, a tuple of ID and text, "
                "or a mapping with id, title and text"
            )


def _is_frame(source: Any) -> bool:
    """Return whether a source is a data frame of pandas or polars, without importing either."""
    has_rows = hasattr(source, "iter_rows") or hasattr(source, "itertuples")
    return has_rows and hasattr(source, "columns")


def _frame_rows(frame: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows as mappings, one in memory at a time; missing values are None, dates ISO 8601."""
    names = list(map(str, frame.columns))
    is_polars = hasattr(frame, "iter_rows")
    for row in frame.iter_rows() if is_polars else frame.itertuples(index=False, name=None):
        yield dict(zip(names, map(mappings.json_value, row), strict=True))


def _folders(data: Folders | None) -> list[Path]:
    if data is None:
        return collection_directories()
    return (
        [Path(data)] if isinstance(data, str | os.PathLike) else [Path(folder_) for folder_ in data]
    )
