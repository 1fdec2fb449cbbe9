"""Reading of a file that was sent, in a child process with limits on memory and time.

A file may be crafted to take any amount of either, and parsing needs the interpreter that answers
other requests. A process can be killed at any step, which a thread cannot.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from traceback import format_exc
from typing import Any, Final, TypedDict

from klsa_search.collection.detection import sniff
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.files.reading import check_size
from klsa_search.collection.files.sandbox import LIMITS, Limits, limit_memory, limit_time
from klsa_search.collection.model import Document, document_as_json
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.opening import open_path
from klsa_search.collection.reading_options import CheckedReadingOptions, with_parameters
from klsa_search.collection.vectors import with_dimensions
from klsa_search.core.child_processes import (
    end,
    end_of,
    exit_with_parent,
    pipes_of_worker,
    read_requests,
    send,
    start_worker,
)
from klsa_search.errors import BadDocument, CollectionError, KlsaError
from klsa_search.storage.columns.declared import DeclaredFields

_REASONS: Final = 100  # reasons for leaving out a record that are kept, at most
_BEGINNING: Final = 500  # characters of a title or text in a preview


@dataclass(frozen=True, kw_only=True)
class FileTask:
    """A file to read, and what the index takes of its documents.

    path        in a folder for it alone, in which archives are unpacked, too
    reading     keyword arguments of `open_collection`
    declared    fields of the index
    dimensions  of its vector spaces by name
    batch       documents of a batch, at most
    characters  of a batch as JSON, at most, unless it has one document
    preview     number of documents to read only the beginning of; None for all documents
    """

    path: Path
    reading: Mapping[str, Any]
    declared: DeclaredFields
    dimensions: dict[str, int]
    batch: int
    characters: int
    preview: int | None = None
    limits: Limits = LIMITS

    def opened(self) -> OpenedCollection:
        """Open the file; CollectionError."""
        kind = self.reading["format"]
        if kind is None and format_of(self.path) and not sniff(self.path):
            kind = "text"  # also a plain text, which is hardly meant to be a whole collection
        options = {**self.reading, "format": kind, "on_error": "skip"}
        collection = open_path(self.path, CheckedReadingOptions.checked(options))
        if collection.format == "xlsx":  # which is in memory as a whole
            check_size(self.path)
        return collection

    def shown(self, message: str) -> str:
        """Return a message for a client: without the folder, and with parameters for options."""
        return with_parameters(message.replace(f"{self.path.parent}/", ""))

    def documents(self, collection: OpenedCollection) -> Iterator[tuple[Document, int]]:
        """Yield the documents that the index takes, and their characters as JSON.

        The collection counts the others.
        """
        name = self.path.name
        documents = collection.documents()
        collection.problems.keep = _REASONS
        for document in documents:
            if collection.numbered:
                document = replace(document, id=f"{name}#{document.id}")
            try:
                if fault := self.declared.fault(document.metadata):
                    raise BadDocument(f"document {document.id!r}: {fault}")
                written = document_as_json(with_dimensions(document, self.dimensions))
            except BadDocument as error:
                collection.intake.refuse(f"{document.origin or name}: {error.message}")
            else:
                yield document, len(written)


class FileSummary(TypedDict):
    """What was read of a file; the fields are those of the answer."""

    format: str
    skipped: dict[str, Any]
    unread: dict[str, Any]
    numbered: list[str]
    notes: list[str]
    columns: list[str]
    used: dict[str, str | list[str]]
    fault: str | None


class FileReader(AbstractContextManager["FileReader"]):
    """The process that reads a file, started by the first `next`; a context manager that kills it.

    Cost: 0.2 s until the first batch, with the imports.
    """

    def __init__(self, task: FileTask) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    def __exit__(self, *failure: object) -> None:
        """Kill the process, also while another thread waits for it."""
        self.kill()
        if self._process is not None:
            end(self._process)

    def kill(self) -> None:
        """Kill the process, without waiting for its end."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def next(self) -> list[Document] | FileSummary:
        """Return the next batch of documents, or the summary after the last one; KlsaError.

        See `FileTask` for the size of a batch.
        """
        process = self._process or self._start()
        assert process.stdout is not None
        try:
            answer: Any = pickle.load(process.stdout)  # noqa: S301 - our child process
        except (EOFError, pickle.UnpicklingError):
            raise self._died(process) from None
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_killed:
                raise CollectionError("the file is not read to its end")
            self._process = process = start_worker(__name__, without_secrets=True)
        try:
            send(process, self._task)
        except BrokenPipeError:
            raise self._died(process) from None
        return process

    def _died(self, process: subprocess.Popen[bytes]) -> CollectionError:
        code, limits = process.wait(), self._task.limits  # its pipe is closed
        if code == -signal.SIGPROF:
            seconds = f"{limits.seconds:g} s"
            return CollectionError(
                f"the file takes too long: more than {seconds} of processor time without another "
                "document; send less in one file"
            )
        return CollectionError(
            f"the file is damaged or takes too much memory: its reader ended with {end_of(code)}; "
            f"it may use {limits.memory >> 20:,} MiB; send less in one file"
        )


def serve() -> None:
    """Run the child process: read one file."""
    exit_with_parent()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the parent may ignore it
    requests, answers = pipes_of_worker()
    task: FileTask = next(read_requests(requests))
    tempfile.tempdir = str(task.path.parent)  # removed by the parent, however this process ends
    memory = task.limits.memory

    def answer(value: object) -> None:
        answers.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        answers.flush()

    limit_memory(memory)
    try:
        for value in _read(task):
            answer(value)
    except KlsaError as error:
        error.message = task.shown(error.message)
        error.field = (error.field or "").removeprefix("columns.") or None
        answer(error)
    except OSError as error:
        answer(error)
    except MemoryError:
        answer(
            CollectionError(
                f"the file takes too much memory: more than {memory >> 20:,} MiB; send less in one "
                "file"
            )
        )
    except Exception:  # noqa: BLE001 - a bug; raised again in the parent
        answer(RuntimeError(f"the reader of a file failed:\n{format_exc()}"))


def _read(task: FileTask) -> Iterator[list[Document] | FileSummary]:
    limit_time(task.limits.seconds)
    collection = task.opened()
    fault = None
    if task.preview is None:
        yield from _batches(collection, task)
    else:
        shown, fault = _previewed(collection, task, task.preview)
        yield shown
    columns, used = collection.intake.header
    skipped = collection.problems.as_json()
    yield FileSummary(
        format=collection.format,
        skipped={**skipped, "first": list(map(task.shown, skipped["first"]))},
        unread=collection.unread.as_json(),
        numbered=[name.replace(f"{task.path.parent}/", "") for name in collection.numbered],
        notes=list(map(task.shown, collection.notes)),
        columns=columns,
        used={role: names for role, names in used.as_mapping().items() if names},
        fault=fault,
    )


def _batches(collection: OpenedCollection, task: FileTask) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document, size in task.documents(collection):
        limit_time(task.limits.seconds)
        if batch and (len(batch) == task.batch or characters + size > task.characters):
            # Before a document is replaced by an empty one.
            collection.intake.refuse_missing_columns()
            yield batch
            batch, characters = [], 0
        batch.append(document)
        characters += size
    if batch:
        yield batch


def _previewed(
    collection: OpenedCollection, task: FileTask, count: int
) -> tuple[list[Document], str | None]:
    """Return the beginnings of the first documents, and why they would not be added, if so."""
    shown: list[Document] = []
    documents = task.documents(collection)
    try:
        for document, _ in islice(documents, count):
            title, text = document.title[:_BEGINNING], document.text[:_BEGINNING]
            shown.append(replace(document, title=title, text=text))
        rest = islice(documents, task.batch - len(shown))
        while collection.intake.missing_columns and next(rest, None) is not None:
            pass
        if shown:
            collection.intake.refuse_missing_columns()
    except CollectionError as error:
        return shown, task.shown(error.message)
    return shown, None
