"""An opened collection, with the files and records that were skipped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from klsa_search.collection.columns import option
from klsa_search.collection.files.formats import missing_extra
from klsa_search.collection.folder import FileCache
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Judgement, Problems, Topic, Unread
from klsa_search.collection.reading_options import CheckedReadingOptions
from klsa_search.collection.vectors import RowVectorsLike, row_vectors, with_row_vectors
from klsa_search.core.wording import counted, first_of
from klsa_search.errors import CollectionError


class OpenedCollection:
    """Implementation of `Collection`: a stream of documents, and queries and judgements if any.

    root     file or folder that is read; None for Python objects
    address  its absolute path; None if the name is sufficient
    files    function that finds the files of the documents and notes the others
    intake   of the last pass: what it has read and refused
    holding  set to an object that must live as long, such as a temporary folder
    cache    set to skip the unchanged files of a folder that is read repeatedly

    >>> collection = open_collection("reports.jsonl")
    >>> isinstance(collection, OpenedCollection), len(list(collection.documents()))
    (True, 6)
    """

    def __init__(
        self,
        name: str,
        kind: str,
        options: CheckedReadingOptions,
        documents: Callable[[Intake], Iterator[Document]],
        *,
        queries: Callable[[], list[Topic]] = list,
        judgements: Callable[[], list[Judgement]] = list,
        files: Callable[[Unread], Iterable[Path]] = lambda _: (),
        root: Path | None = None,
        address: str | None = None,
    ) -> None:
        self.name = name
        self.format = kind
        self.queries = queries
        self.judgements = judgements
        self.root = root
        self.address = address
        self._options = options
        self._documents = documents
        self._files = files
        self._unread: Unread | None = None
        self.intake = Intake(options)
        self.holding: object = None
        self.cache: FileCache | None = None
        self._vectors: Mapping[str, Any] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options of `ReadingOptions` that are not defaults, as JSON values.

        Columns with common names that the last pass has used for all records count as given, so
        that a later version of the source is read alike.
        """
        stored, completed = self._options.stored(), self.intake.completed
        if len(completed) != 1 or not self.intake.uniform:
            return stored
        return {**stored, "columns": next(iter(completed)).as_mapping()}

    @property
    def problems(self) -> Problems:
        """Return what the last pass over the documents has skipped so far."""
        return self.intake.problems

    @property
    def numbered(self) -> list[str]:
        """Return the files whose documents the last pass has numbered, for lack of IDs."""
        return self.intake.numbered

    @property
    def notes(self) -> list[str]:
        """Return what the last pass has recognised in files, such as encodings and columns."""
        unused = [
            f"{self.name}: the pattern {pattern!r} leaves out nothing; check the spelling"
            for pattern in self._options.exclude
            if not pattern.startswith("!") and f"excluded by {pattern}" not in self.unread.kinds
        ]
        notes = self.intake.notes
        return [*(f"{first_of(files, 'file')}: {fact}" for fact, files in notes.items()), *unused]

    def refuse_unused_texts(self) -> None:
        """Raise CollectionError if no document of the last pass has a title or text, but others.

        The message names the fields with most text.
        """
        texts = self.intake.unused_texts
        if self.intake.has_texts or not texts:
            return
        longest = sorted(texts, key=texts.__getitem__, reverse=True)
        raise CollectionError(
            f"{self.name}: no document has a title or text; texts are in "
            f"{', '.join(map(repr, longest[:3]))}: name them, as with "
            f"{option('text', longest[0])} (in Python columns=)",
            field="columns.text",
        )

    def documents(self) -> Iterator[Document]:
        """Stream the documents in source order, each id once; CollectionError on bad input."""
        self.intake = Intake(self._options, self.cache)
        admitted = self.intake.validated(self._documents(self.intake))
        if self._vectors:
            problems = self.problems
            admitted = with_row_vectors(admitted, self._vectors, lambda: problems.count)
        return admitted if self.root is None else self._existing(admitted)

    def _existing(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Yield documents; CollectionError if a file or folder is removed meanwhile."""
        try:
            yield from documents
        except FileNotFoundError as error:
            raise CollectionError(
                f"`{error.filename or self.root}` was removed while it was being "
                "read; read the source again"
            ) from error

    def add_vectors(self, vectors: RowVectorsLike) -> None:
        """Give the documents vectors: by space, row i for the i-th document; CollectionError.

        >>> collection = open_collection("reports.jsonl")
        >>> collection.add_vectors({"own": np.eye(6)})
        >>> next(iter(collection.documents())).metadata["_vectors"].keys()
        dict_keys(['own'])
        """
        self._vectors = row_vectors(vectors)

    def files(self) -> Iterator[Path]:
        """Yield the files of the documents, in the order they are read."""
        unread = Unread()
        yield from self._files(unread)
        self._unread = unread

    @property
    def unread(self) -> Unread:
        """Return the files of the folder that are not read, as of the last listing and pass.

        Cost: listing the files once, or reading the beginning of each if its content decides.
        """
        if self._unread is None:
            for _ in self.files():
                pass
        listed, read = self._unread or Unread(), self.intake.unread
        kinds = Counter(listed.kinds) + Counter(read.kinds)
        return Unread(dict(kinds), {**read.first, **listed.first})


_log = logging.getLogger(__name__)
_KINDS = 5  # number of kinds of files to list


def unread_text(unread: Unread) -> str:
    """Return how many files of the source were not read, by kind, with the first of each."""
    kinds = sorted(unread.kinds, key=lambda kind: (-unread.kinds[kind], kind))
    counts = [f"{unread.kinds[kind]:,} {kind}" for kind in kinds[:_KINDS]]
    if kinds[_KINDS:]:
        counts.append(f"{sum(unread.kinds[kind] for kind in kinds[_KINDS:]):,} of other kinds")
    first = ", ".join(unread.first[kind] for kind in kinds[:_KINDS])
    left_out = any(kind.startswith(("excluded", "ignored")) for kind in kinds)
    files = counted(unread.count, "file", "files and folders" if left_out else "")
    links = "; --follow-links reads linked files" if "linked" in unread.kinds else ""
    lacking: dict[str, list[str]] = {}
    for kind in kinds:
        if kind.startswith(".") and (extra := missing_extra(Path(f"_{kind}"))):
            lacking.setdefault(extra, []).append(kind)
    extras = "".join(
        f"; pip install 'klsa-search[{extra}]' reads {', '.join(suffixes)}"
        for extra, suffixes in lacking.items()
    )
    return f"{files}: {', '.join(counts)} (first: {first}){links}{extras}"


def remarks(collection: OpenedCollection) -> list[str]:
    """Return what the last pass has recognised, numbered and skipped, in lines."""
    notes = collection.notes
    if files := collection.numbered:
        numbered = f"the documents of {first_of(files, 'file')} have no IDs and were numbered"
        notes = [*notes, f"{numbered}; --id names a column of IDs (in Python columns=)"]
    problems = collection.problems
    records = problems.count - sum(problems.kinds.values())
    skipped = [counted(records, "bad record")] if records else []
    skipped += [f"{count:,} {kind}" for kind, count in sorted(problems.kinds.items())]
    lines = [f"skipped {', '.join(skipped)}; the first reasons:"] if skipped else []
    return [*(f"note: {note}" for note in notes), *lines, *(f"  {r}" for r in problems.reasons)]


def warn_of_skipped(collection: OpenedCollection) -> None:
    """Log what the last pass has not read, recognised, numbered and skipped.

    For functions that open a source themselves, so that the caller has no collection to inspect.
    """
    unread = collection.unread
    not_read = [f"not read: {unread_text(unread)}"] if unread.count else []
    for line in (*not_read, *remarks(collection)):
        _log.warning("%s: %s", collection.name, line.removeprefix("note: ").strip())
