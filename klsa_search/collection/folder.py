"""Folders: walking them in a fixed order, and text files as documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from klsa_search.collection.intake import Cut, Intake, text_fault
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Document, Unread

TEXT_SUFFIXES = (".markdown", ".md", ".rst", ".text", ".txt")
MARKDOWN_SUFFIXES = (".markdown", ".md")


def walk(path: Path, links: bool = False, unread: Unread | None = None) -> Iterator[Path]:
    """Yield the files of a folder and all below it, sorted by name, folder by folder.

    Hidden files and folders are left out, and so is what a link leads to, unless `links` are
    followed; then a folder that is reached in two ways, or from within, is walked once. Links that
    are not, and what is neither file nor folder, go to `unread`. A path that is a file yields
    itself, and a path may itself be a link. Memory is one folder's names at a time, for each folder
    above it.
    """
    if not path.is_dir():
        path.stat()  # a folder that was removed is no file
        yield path
        return
    walked = {_identity(path)}
    open_folders = [iter(_entries(path))]
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif entry.name.startswith("."):
            continue
        elif entry.is_symlink() and not links:
            pass_over(Path(entry.path), path, unread, "linked")
        elif os.path.isdir(entry.path):
            identity = _identity(Path(entry.path))
            if identity not in walked:
                walked.add(identity)
                open_folders.append(iter(_entries(Path(entry.path))))
        elif os.path.isfile(entry.path):
            yield Path(entry.path)
        else:
            pass_over(Path(entry.path), path, unread, "special")


def only(
    file: Path, is_beside: Callable[[Path], bool], root: Path, links: bool, unread: Unread
) -> Iterator[Path]:
    """Yield one file of a folder; all others but those beside it are passed over."""
    yield file
    for path in walk(root, links, unread):
        if path != file and not is_beside(path):
            pass_over(path, root, unread)


def pass_over(path: Path, root: Path, unread: Unread | None, kind: str | None = None) -> None:
    """Note a file that is not read: its kind is its suffix unless it is told."""
    if unread is not None:
        # A path may hold bytes that are not UTF-8, and is shown.
        shown = os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "replace")
        name = PurePosixPath(shown.lower())
        suffix = "".join(name.suffixes[-2:]) if name.suffix == ".gz" else name.suffix
        unread.add(kind or suffix or "without suffix", shown)


def listing(path: Path, links: bool = False) -> list[Path]:
    """Return the files directly in a folder, sorted by name; linked ones only if told to."""
    return [
        Path(entry.path)
        for entry in _entries(path)
        if os.path.isfile(entry.path) and (links or not entry.is_symlink())
    ]


def plain_name(path: Path) -> str:
    """Return the name of a file in lower case, without `.gz`."""
    return path.name.lower().removesuffix(".gz")


def is_text(path: Path) -> bool:
    """Say whether a file is named as text is: .txt, .text, .md, .markdown or .rst, or packed."""
    return plain_name(path).endswith(TEXT_SUFFIXES)


def documents(root: Path, intake: Intake, links: bool = False) -> Iterator[Document]:
    """Stream the text files of a folder, UTF-8, one document each; or one file, whatever its name.

    The id is the path below the folder, with slashes. The title is a Markdown file's first
    heading, if it opens with one (and then not part of the text), else the name of the file.
    """
    if not root.is_dir():
        yield from intake.whole(_document(root, root.name, intake))
        return
    for path in texts(root, links):
        yield from intake.whole(_document(path, path.relative_to(root).as_posix(), intake))


def texts(root: Path, links: bool = False, unread: Unread | None = None) -> Iterator[Path]:
    """Yield the files that `documents` reads, in its order."""
    for path in walk(root, links, unread):
        if path == root or is_text(path):
            yield path
        else:
            pass_over(path, root, unread)


def _document(path: Path, name: str, intake: Intake) -> Iterator[Document]:
    parts = []
    for number, line in lines(path):
        fault = text_fault(line)
        if fault:
            intake.refuse(f"{path}:{number}: the line {fault}")
            return
        parts.append(line)
    text = "".join(parts).strip()
    title = plain_name(path)
    first, _, rest = text.partition("\n")
    if title.endswith(MARKDOWN_SUFFIXES) and first.startswith("# "):
        title, text = first.removeprefix("# ").strip(), rest.strip()
    else:
        title = path.name.split(".")[0]
    yield Document(id=name, title=title, text=text, origin=f"{path}:1")


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise Cut(f"{path}: cannot be listed ({error.strerror})") from None


def _identity(folder: Path) -> tuple[int, int]:
    """What tells a folder from all others, whatever way it is reached."""
    found = folder.stat()
    return found.st_dev, found.st_ino
