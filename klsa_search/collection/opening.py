"""`open_collection`: opens files, folders, named collections and Python objects."""

from __future__ import annotations

import io
import os
import shutil
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, Unpack, cast

from klsa_search.collection import irds, json_files, queries, smart, tables, trec
from klsa_search.collection.columns import PLAIN
from klsa_search.collection.detection import (
    CORPUS,
    SMART_JUDGEMENTS,
    SMART_QUERIES,
    detect_format,
    is_sidecar,
    named_files,
    smart_documents,
    sniff,
    table_format,
)
from klsa_search.collection.encodings import check_encoding
from klsa_search.collection.files.formats import is_archive, missing_extra, table_of
from klsa_search.collection.files.reading import READERS as TABLE_READERS
from klsa_search.collection.files.reading import Reader, folder_documents, paths
from klsa_search.collection.folder import Selection, record_unread, single_file, walk
from klsa_search.collection.intake import Intake
from klsa_search.collection.json_layouts import list_at
from klsa_search.collection.json_values import json_value
from klsa_search.collection.mappings import record_of, records_by_id
from klsa_search.collection.model import Document, Row, Unread
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.public_collections import (
    COLLECTIONS,
    PYTHON_DOCS,
    collection_directories,
    find,
    python_documents,
)
from klsa_search.collection.reading_options import (
    CheckedReadingOptions,
    PathLike,
    ReadingOptions,
)
from klsa_search.core.arguments import described
from klsa_search.core.installation import require
from klsa_search.errors import CollectionError

READERS: Final[dict[str, Reader]] = {**TABLE_READERS, "trec": trec.documents}
_ROWS: Final = Path("documents")  # in messages


def open_collection(
    source: PathLike | BinaryIO | Iterable[Row] | Mapping[str, Any],
    **reading: Unpack[ReadingOptions],
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
              text; a mapping is one document if it has an ID, title or text, else it has texts or
              mappings by ID, or columns by name
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
    records   path of the list of documents in an object of JSON, such as "data.cards"; by default
              the list with most text
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
    return _opened(source, CheckedReadingOptions.checked(reading))


def _opened(source: Any, options: CheckedReadingOptions) -> OpenedCollection:
    if isinstance(source, str) and not source:
        raise CollectionError(
            "the source is blank; give a path, as . for this folder", field="source"
        )
    if isinstance(source, str) and source.startswith(irds.PREFIX):
        return irds.collection(irds.load(source.removeprefix(irds.PREFIX)), options)
    if isinstance(source, str) and source.startswith(tables.PREFIX):
        return tables.database_collection(source, options)
    if hasattr(source, "docs_iter"):
        return irds.collection(source, options)
    for method in ("collect", "read_all", "to_pylist"):  # lazy frames of Polars, tables of PyArrow
        source = getattr(source, method)() if hasattr(source, method) else source
    if isinstance(source, io.IOBase | bytes | bytearray):
        stream = io.BytesIO(source) if isinstance(source, bytes | bytearray) else source
        return _stream(cast(BinaryIO, stream), options)
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, Mapping):
            records = options.records
            source = list_at(source, records) if records else records_by_id(source)
        elif options.records:
            raise _without_lists(f"a {type(source).__name__}")
        if not isinstance(source, Iterable):
            raise CollectionError(
                f"source = {described(source)}; give a path, one of "
                f"{', '.join(COLLECTIONS)}, or an iterable of documents",
                field="source",
            )
        return OpenedCollection("documents", "records", options, partial(_records, source))
    if source == PYTHON_DOCS:
        return _python_docs(options)
    if source in COLLECTIONS:
        folders = collection_directories() if options.data is None else list(options.data)
        path = find(source, folders)
        return smart_collection(source, path, options, Selection(follow_links=True), target=source)
    path = Path(source)
    if not path.exists():
        if "://" in os.fspath(source):
            raise CollectionError(
                f"{source}: a URL is not read as a source; download the file, as with `curl -LO "
                f"{source}`, and give its path"
            )
        raise CollectionError(
            f"{path}: no such file, folder or collection; the collections are: "
            f"{', '.join(COLLECTIONS)}"
        )
    return open_path(path, options)


def _without_lists(source: str) -> CollectionError:
    return CollectionError(
        f"{source} has no lists to choose; records is for an object of JSON", field="records"
    )


def _format(path: Path, options: CheckedReadingOptions, selection: Selection) -> str:
    """Return the format given or detected; an object in one line is JSON if its list is named."""
    kind = options.format or detect_format(path, selection)
    is_named = options.format or table_of(path) == "jsonl"
    if options.records and kind == "jsonl" and not is_named:
        kind = "json"
    if options.records and kind != "json":
        raise _without_lists(f"{path}: the format {kind}")
    return kind


def open_path(path: Path, options: CheckedReadingOptions) -> OpenedCollection:
    """Open a file or folder that exists; CollectionError."""
    selection = Selection(options.follow_links, options.exclude)
    if not (path.is_file() or path.is_dir()):
        raise CollectionError(
            f"{path}: a pipe or device cannot be read as a source; send its "
            "content to standard input and give - as the source, or copy it to a "
            "file",
            field="source",
        )
    kind = _format(path, options, selection)
    within = path.is_dir()
    has_files = within or is_archive(path)
    _refuse_unused_options(path, kind, options, has_files=has_files)
    # Both are used in JSON and messages, and a path may have bytes that are not UTF-8.
    address = os.fsencode(path.resolve()).decode("utf-8", "replace")
    name = address.rpartition(os.sep)[2]
    if kind == "smart":
        return smart_collection(name, path, options, selection, address=address)
    if kind == "beir":
        corpora = named_files(path, CORPUS, selection) if within else []
        if not corpora:
            raise CollectionError(
                f"{path}: not a BEIR folder, because it has no corpus.jsonl; name the folder that "
                "has it"
            )
        # Judgements refer to ids, so documents are not numbered.
        documents = partial(_read, partial(json_files.documents, may_number=False), corpora[:1])
        files = partial(single_file, corpora[0], partial(is_sidecar, path), path, selection)
    elif kind == "text":
        documents = partial(folder_documents, path, selection=selection)
        files = partial(paths, path, selection)
        if next(files(Unread()), None) is None:
            for extra in filter(None, map(missing_extra, walk(path, selection))):
                require(extra)  # all files need packages that are not installed
    else:
        files = partial(_files, path, kind, selection) if within else partial(walk, path, selection)
        documents = partial(_read, READERS[kind], files if within else [path])
    return OpenedCollection(
        name,
        kind,
        options,
        documents,
        queries=partial(queries.queries, path, selection) if within else list,
        judgements=partial(queries.judgements, path, selection) if within else list,
        files=files,
        root=path,
        address=address,
    )


def _refuse_unused_options(
    path: Path, kind: str, options: CheckedReadingOptions, *, has_files: bool
) -> None:
    """Raise CollectionError for an option that a format does not have."""
    check_encoding(options.encoding)
    field = fault = ""
    if options.columns != PLAIN and not (kind in TABLE_READERS or (kind == "text" and has_files)):
        field = f"columns.{next(iter(options.columns.as_mapping()))}"
        fault = f"the format {kind} has no columns; formats with columns are: "
        fault += f"{', '.join(TABLE_READERS)}, and text if it is a folder with such files"
    elif options.exclude and not has_files:
        field, fault = "exclude", "a file; exclude is for folders and archives of files"
    elif options.sections and kind != "text":
        field, fault = "sections", f"the format {kind} has no sections; only text files have"
    elif options.encoding is not None and kind not in ("csv", "references", "text", "tsv"):
        field = "encoding"
        fault = f"the format {kind} has an encoding of its own; leave out --encoding (in Python "
        fault += "encoding=), which is for csv, tsv, references and text"
    if fault:
        raise CollectionError(f"{path}: {fault}", field=field)


def smart_collection(
    name: str,
    path: Path,
    options: CheckedReadingOptions,
    selection: Selection,
    *,
    target: str | None = None,
    address: str | None = None,
) -> OpenedCollection:
    """Open a folder of SMART files, or a file of documents; CollectionError.

    target  public collection that it is
    """
    within = path.is_dir()
    file = smart_documents(path, selection) if within else path
    if file is None:
        raise CollectionError(
            f"{path}: no SMART documents found (one file with `.all` in its name, "
            "which begins with `.I`); name the file itself"
        )
    rules = smart.SmartRules.of(file, target)
    query_file, qrels_file = (
        next(iter(named_files(path, pattern, selection)), None) if within else None
        for pattern in (SMART_QUERIES, SMART_JUDGEMENTS)
    )
    if target and not (query_file and qrels_file):
        raise CollectionError(
            f"{path}: the queries or judgements of {target} are missing; "
            f"delete the folder and run `klsa-eval fetch {path.name.lower()}`"
        )
    return OpenedCollection(
        name,
        "smart",
        options,
        partial(_read, partial(smart.documents, rules=rules), [file]),
        queries=partial(smart.queries, query_file, rules) if query_file else list,
        judgements=partial(smart.judgements, qrels_file, rules) if qrels_file else list,
        files=partial(
            single_file, file, lambda other: other in (query_file, qrels_file), path, selection
        ),
        root=path,
        address=address,
    )


def _files(
    root: Path, kind: str, selection: Selection, unread: Unread | None = None
) -> Iterator[Path]:
    for path in walk(root, selection, unread):
        if is_sidecar(root, path):
            continue
        if (table_format(path) or sniff(path)) == kind:
            yield path
        else:
            record_unread(path, root, unread)


def _read(
    reader: Reader, files: Iterable[Path] | Callable[[], Iterable[Path]], intake: Intake
) -> Iterator[Document]:
    """Yield the documents of files, which a function may find at each pass."""
    paths = list(files() if callable(files) else files)
    intake.is_single_file = len(paths) == 1
    for path in paths:
        yield from intake.read_file(reader(path, intake))


def _stream(source: BinaryIO, options: CheckedReadingOptions) -> OpenedCollection:
    """Open a stream by copying it to a temporary file, because format detection reads it first."""
    folder = TemporaryDirectory(prefix="klsa-stream-")
    path = Path(folder.name) / "stdin"
    with path.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    collection = open_path(path, options)
    if collection.format not in READERS:
        raise CollectionError(
            f"a stream cannot be read as {collection.format}; choose one of {', '.join(READERS)}",
            field="format",
        )
    collection.root = collection.address = None
    collection.holding = folder
    return collection


def _python_docs(options: CheckedReadingOptions) -> OpenedCollection:
    root = Path(sysconfig.get_path("stdlib"))
    if not root.is_dir():
        raise CollectionError(
            f"{PYTHON_DOCS}: no source of the standard library at `{root}`; name a "
            "file or folder instead"
        )
    return OpenedCollection(
        PYTHON_DOCS, PYTHON_DOCS, options, lambda _: python_documents(root), root=root
    )


def _records(rows: Iterable[Any], intake: Intake) -> Iterator[Document]:
    rows = _frame_rows(rows) if _is_frame(rows) else rows
    return intake.documents(_ROWS, _read_rows(rows, intake))


def _read_rows(
    rows: Iterable[Any], intake: Intake
) -> Iterator[tuple[str, Mapping[str, Any] | Document]]:
    """Yield the rows of a Python program as documents or mappings, with their origins."""
    for number, row in enumerate(rows, start=1):
        origin = f"document {number}"
        if isinstance(row, Document):
            intake.missing_columns.clear()  # documents have no columns
            yield origin, row if row.origin else replace(row, origin=origin)
            continue
        try:
            record = record_of(row)
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
        yield dict(zip(names, map(json_value, row), strict=True))
