"""Files and folders as collections: `open_path`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from klsa_search.collection import folder, json_files, queries, smart, trec
from klsa_search.collection.detection import (
    corpus_file,
    detect_format,
    is_sidecar,
    smart_documents,
    smart_judgements,
    smart_queries,
    sniff,
    table_format,
)
from klsa_search.collection.encodings import check_encoding
from klsa_search.collection.files.formats import is_archive, missing_extra
from klsa_search.collection.files.reading import READERS as TABLE_READERS
from klsa_search.collection.files.reading import Reader, folder_documents, paths
from klsa_search.collection.folder import Selection
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Unread
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.reading_options import PLAIN, ReadingOptions
from klsa_search.core.extras import require
from klsa_search.errors import CollectionError

READERS: Final[dict[str, Reader]] = {**TABLE_READERS, "trec": trec.documents}


def open_path(path: Path, options: ReadingOptions) -> OpenedCollection:
    """Open a file or folder that exists; CollectionError."""
    selection = Selection(options.follow_links, options.exclude)
    if not (path.is_file() or path.is_dir()):
        raise CollectionError(
            f"{path}: a pipe or device cannot be read as a source; send its "
            "content to standard input and give - as the source, or copy it to a "
            "file",
            field="source",
        )
    kind = options.format or detect_format(path, selection)
    is_folder = path.is_dir() or (kind == "text" and is_archive(path))
    if (
        options.columns != PLAIN
        and kind not in TABLE_READERS
        and not (kind == "text" and is_folder)
    ):
        raise CollectionError(
            f"{path}: the format {kind} has no columns; formats with columns are: "
            f"{', '.join(TABLE_READERS)}, and text if it is a folder with such files",
            field=f"columns.{next(iter(options.columns.as_mapping()))}",
        )
    if selection.exclude and not (path.is_dir() or is_archive(path)):
        raise CollectionError(
            f"{path}: a file; exclude is for folders and archives of files", field="exclude"
        )
    if options.sections and kind != "text":
        raise CollectionError(
            f"{path}: the format {kind} has no sections; only text files have", field="sections"
        )
    refuse_encoding(options.encoding, kind, str(path))
    # Both are used in JSON and messages, and a path may have bytes that are not UTF-8.
    address = os.fsencode(path.resolve()).decode("utf-8", "replace")
    name = address.rpartition(os.sep)[2]
    if kind == "smart":
        return smart_collection(name, path, options, selection, address=address)
    if kind == "beir":
        corpus = corpus_file(path, selection) if path.is_dir() else None
        if corpus is None:
            raise CollectionError(
                f"{path}: not a BEIR folder, because it has no corpus.jsonl; name the folder that "
                "has it"
            )
        # Judgements refer to ids, so documents are not numbered.
        documents = partial(one_file, partial(json_files.documents, may_number=False), corpus)
        files = partial(folder.single_file, corpus, partial(is_sidecar, path), path, selection)
    elif kind == "text":
        documents = partial(folder_documents, path, selection=selection)
        files = partial(paths, path, selection)
        if next(files(Unread()), None) is None:
            _refuse_unreadable(path, selection)
    elif path.is_dir():
        documents = partial(_many_files, path, kind, selection)
        files = partial(_files, path, kind, selection)
    else:
        documents = partial(one_file, READERS[kind], path)
        files = partial(folder.walk, path, selection)
    within = path.is_dir()
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


def smart_collection(
    name: str,
    path: Path,
    options: ReadingOptions,
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
    rules = smart.smart_rules(file, target)
    query_file = smart_queries(path, selection) if within else None
    qrels_file = smart_judgements(path, selection) if within else None
    if target and not (query_file and qrels_file):
        raise CollectionError(
            f"{path}: the queries or judgements of {target} are missing; "
            f"delete the folder and run `klsa-eval fetch {path.name.lower()}`"
        )
    return OpenedCollection(
        name,
        "smart",
        options,
        partial(one_file, partial(smart.documents, rules=rules), file),
        queries=partial(smart.queries, query_file, rules) if query_file else list,
        judgements=partial(smart.judgements, qrels_file, rules) if qrels_file else list,
        files=partial(
            folder.single_file,
            file,
            lambda other: other in (query_file, qrels_file),
            path,
            selection,
        ),
        root=path,
        address=address,
    )


def refuse_encoding(encoding: str | None, kind: str, name: str) -> None:
    """Raise CollectionError for an unknown encoding, or of a format that has its own."""
    check_encoding(encoding)
    if encoding is not None and kind not in ("csv", "text", "tsv"):
        raise CollectionError(
            f"{name}: the format {kind} has an encoding of its own; leave out --encoding "
            "(in Python encoding=), which is for csv, tsv and text",
            field="encoding",
        )


def _refuse_unreadable(path: Path, selection: Selection) -> None:
    """Raise MissingExtra if all files of a folder need packages that are not installed."""
    for file in folder.walk(path, selection):
        extra = missing_extra(file)
        if extra:
            require(extra)


def one_file(reader: Reader, path: Path, intake: Intake) -> Iterator[Document]:
    """Yield the documents of a source of one file."""
    return intake.read_file(reader(path, intake))


def _many_files(root: Path, kind: str, selection: Selection, intake: Intake) -> Iterator[Document]:
    paths = list(_files(root, kind, selection))
    intake.is_single_file = len(paths) == 1
    for path in paths:
        yield from intake.read_file(READERS[kind](path, intake))


def _files(
    root: Path, kind: str, selection: Selection, unread: Unread | None = None
) -> Iterator[Path]:
    for path in folder.walk(root, selection, unread):
        if is_sidecar(root, path):
            continue
        if (table_format(path) or sniff(path)) == kind:
            yield path
        else:
            folder.record_unread(path, root, unread)
