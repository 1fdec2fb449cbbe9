"""Folders: their files in a fixed order, those skipped, and those unchanged since the last pass."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from klsa_search.collection.model import Document, TruncatedFile, Unread
from klsa_search.errors import CollectionError, DocumentNotFound

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


DEPENDENCIES: Final = ("__pycache__", "bower_components", "node_modules", "site-packages", "venv")
"""Names of folders below a source that hold packages of others or caches, and are left out."""

COMPRESSED = (".gz", ".zip", ".zst")
"""Suffixes of compressed files; the suffix before them gives the format."""

IGNORE_FILE: Final = ".gitignore"


class Selection:
    """Which files of a folder are read.

    follow_links  whether symbolic links are followed
    exclude       patterns of paths to leave out, as in `.gitignore`; one that begins with ! reads
                  what an earlier one, a `.gitignore` file or `DEPENDENCIES` leaves out

    CollectionError if a pattern is invalid.
    """

    def __init__(self, follow_links: bool = False, exclude: Sequence[str] = ()) -> None:
        self.follow_links = follow_links
        self.exclude = tuple(exclude)
        for pattern in self.exclude:
            if _spec([pattern]) is None:
                raise CollectionError(
                    f"exclude: {pattern!r} is not a pattern; write it as in a .gitignore file, "
                    "such as *.log, drafts/ or docs/**/old",
                    field="exclude",
                )
        self._spec = _spec(self.exclude) if self.exclude else None

    def exclusion(self, path: str, ignored: Sequence[IgnoreFile] = ()) -> str | None:
        """Return why a file or folder is left out; None if it is read.

        path     below the source, with a slash at the end of a folder
        ignored  the `.gitignore` files of the folders around it, outermost first
        The last pattern of `exclude` that matches decides, else that of the innermost file.
        """
        match = self._spec.check_file(path) if self._spec else None
        if match is not None and match.include is not None and match.index is not None:
            return f"excluded by {self.exclude[match.index]}" if match.include else None
        for file in reversed(ignored):
            include = file.spec.check_file(path.removeprefix(file.folder)).include
            if include is not None:
                return f"ignored by {IGNORE_FILE}" if include else None
        name = PurePosixPath(path).name
        return f"{name} folder" if path.endswith("/") and name in DEPENDENCIES else None

    def exclusion_of_member(self, name: str) -> str | None:
        """Return why a file of an archive is left out, perhaps by a folder; None if it is read."""
        at = name.find("/")
        while at >= 0:
            if reason := self.exclusion(name[: at + 1]):
                return reason
            at = name.find("/", at + 1)
        return self.exclusion(name)


class IgnoreFile(NamedTuple):
    """A `.gitignore` file.

    folder  that contains it, below the source and with a slash at the end; "" for the source
    """

    folder: str
    spec: GitIgnoreSpec


EVERYTHING: Final = Selection()


def walk(
    path: Path, selection: Selection = EVERYTHING, unread: Unread | None = None
) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, sorted by name, folder by folder.

    Hidden files and folders are left out. What the selection, `.gitignore` files or `DEPENDENCIES`
    leave out is added to `unread`, a folder as one; the path itself may be such a folder. Symbolic
    links are followed only if the selection does so, each folder once. Other links, and entries
    that are neither file nor folder, are added to `unread`. A path that is a file yields itself;
    the path itself may be a link. Memory: the names in one folder of each level.
    """
    if not path.is_dir():
        path.stat()  # raises if the path was removed
        yield path
        return
    walked = {_identity(path)}
    ignored = _ignore_files(path, "")
    open_folders = [(iter(_entries(path)), "", ignored)]
    while open_folders:
        entries, below, ignored = open_folders[-1]
        entry = next(entries, None)
        if entry is None:
            open_folders.pop()
            continue
        if entry.name.startswith((".", "~$")):  # hidden, or of an open document of Office
            continue
        is_folder = os.path.isdir(entry.path)
        name = f"{below}{entry.name}{'/' if is_folder else ''}"
        if entry.is_symlink() and not selection.follow_links:
            record_unread(Path(entry.path), path, unread, "linked")
        elif reason := selection.exclusion(name, ignored):
            record_unread(Path(entry.path), path, unread, reason)
        elif is_folder:
            identity = _identity(Path(entry.path))
            if identity not in walked:
                walked.add(identity)
                files = [*ignored, *_ignore_files(Path(entry.path), name)]
                open_folders.append((iter(_entries(Path(entry.path))), name, files))
        elif os.path.isfile(entry.path):
            yield Path(entry.path)
        else:
            record_unread(Path(entry.path), path, unread, "special")


def single_file(
    file: Path, is_sidecar: Callable[[Path], bool], root: Path, selection: Selection, unread: Unread
) -> Iterator[Path]:
    """Yield one file of a folder; add the others, except sidecar files, to `unread`."""
    yield file
    for path in walk(root, selection, unread):
        if path != file and not is_sidecar(path):
            record_unread(path, root, unread)


def record_unread(path: Path, root: Path, unread: Unread | None, kind: str | None = None) -> None:
    """Add a file that is not read to `unread`; its kind is its suffix by default."""
    if unread is not None:
        shown = display_path(path, root)
        unread.add(kind or suffix_of(shown), shown)


def suffix_of(path: str) -> str:
    """Return the suffix of a file, with that of compression; "without suffix" if it has none."""
    name = PurePosixPath(path.lower())
    suffix = "".join(name.suffixes[-2:]) if name.suffix in COMPRESSED else name.suffix
    return suffix or "without suffix"


def display_path(path: Path, root: Path) -> str:
    """Return the path below a folder as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "replace")


def list_files(path: Path, selection: Selection = EVERYTHING) -> list[Path]:
    """Return the files directly in a folder that a selection reads, sorted by name."""
    ignored = _ignore_files(path, "")
    return [
        Path(entry.path)
        for entry in _entries(path)
        if os.path.isfile(entry.path)
        and (selection.follow_links or not entry.is_symlink())
        and not selection.exclusion(entry.name, ignored)
    ]


def uncompressed_name(path: PurePath) -> str:
    """Return the name of a file in lower case, without a suffix of compression."""
    name = path.name.lower()
    return next((name.removesuffix(suffix) for suffix in COMPRESSED if name.endswith(suffix)), name)


def _ignore_files(folder: Path, below: str) -> list[IgnoreFile]:
    """Return the `.gitignore` file of a folder, without invalid lines, in a list; or none."""
    path = folder / IGNORE_FILE
    if not path.is_file():
        return []
    try:
        lines = path.read_text("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise TruncatedFile(f"{path}: cannot be read ({error.strerror})") from None
    spec = _spec([line for line in lines if _spec([line]) is not None])
    return [] if spec is None else [IgnoreFile(below, spec)]


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    """Return patterns, compiled; None if one is invalid."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error):
        return None


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise TruncatedFile(f"{path}: cannot be listed ({error.strerror})") from None


def _identity(folder: Path) -> tuple[int, int]:
    """Return device and inode of a folder."""
    status = folder.stat()
    return status.st_dev, status.st_ino


class _FileState(NamedTuple):
    """A file as it was read.

    stamp  inode, size and times: one of them changes if the content does
    ids    of its documents
    """

    stamp: tuple[int, int, int, int]
    ids: list[str]

    @classmethod
    def of(cls, path: Path) -> _FileState:
        """Return the present state of a file, without documents."""
        status = path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        return cls((status.st_ino, status.st_size, *times), [])


class FileCache:
    """Remembers size, times and document IDs of each file that was read in the last sync.

    stored  returns the document of an ID as the sync stored it; DocumentNotFound
    Memory: some hundred bytes a file.
    """

    def __init__(self, stored: Callable[[str], Document]) -> None:
        self._stored = stored
        self._synced: dict[Path, _FileState] = {}
        self._read: dict[Path, _FileState] = {}  # by the present pass

    def documents(
        self, path: Path, read: Callable[[], Iterator[Document]], problems: Callable[[], int]
    ) -> Iterator[Document]:
        """Yield the documents of a file: stored ones if it has not changed, else as `read` does.

        problems  returns the number of records skipped so far: a file with any is read again
        """
        before = problems()
        state = _FileState.of(path)  # before it is read, so that a later change is noticed
        ids = self._unchanged(path, state)
        for document in read() if ids is None else map(self._stored, ids):
            state.ids.append(document.id)
            yield document
        if problems() == before:
            self._read[path] = state

    def commit(self) -> None:
        """Remember the files of the last pass, whose documents are stored now."""
        self._synced, self._read = self._read, {}

    def discard(self) -> None:
        """Forget the last pass, whose documents were not stored."""
        self._read = {}

    def _unchanged(self, path: Path, state: _FileState) -> list[str] | None:
        """Return the documents of a file that has not changed, if all are stored; else None."""
        synced = self._synced.get(path)
        if synced is None or synced.stamp != state.stamp:
            return None
        try:
            for id_ in synced.ids:  # one in memory at a time: a table may have many
                self._stored(id_)
        except DocumentNotFound:  # another process has deleted it
            return None
        return synced.ids
