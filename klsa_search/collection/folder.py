"""Folders: walking them in a fixed order, and text files as documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection.intake import Cut, Intake, text_fault
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Document

TEXT_SUFFIXES = (".markdown", ".md", ".rst", ".text", ".txt")
MARKDOWN_SUFFIXES = (".markdown", ".md")


def walk(path: Path) -> Iterator[Path]:
    """Yield the files of a folder and all below it, sorted by name, folder by folder.

    Hidden files and folders are left out and links to folders are not followed. A path that is
    a file yields itself. Memory is one folder's names at a time.
    """
    if not path.is_dir():
        yield path
        return
    for entry in _entries(path):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from walk(path / entry.name)
        elif entry.is_file():
            yield path / entry.name


def listing(path: Path) -> list[Path]:
    """Return the files directly in a folder, sorted by name."""
    return [path / entry.name for entry in _entries(path) if entry.is_file()]


def plain_name(path: Path) -> str:
    """Return the name of a file in lower case, without `.gz`."""
    return path.name.lower().removesuffix(".gz")


def is_text(path: Path) -> bool:
    """Say whether a file is named as text is: .txt, .text, .md, .markdown or .rst, or packed."""
    return plain_name(path).endswith(TEXT_SUFFIXES)


def documents(root: Path, intake: Intake) -> Iterator[Document]:
    """Stream the text files of a folder, UTF-8, one document each; or one file, whatever its name.

    The id is the path below the folder, with slashes. The title is a Markdown file's first
    heading, if it opens with one (and then not part of the text), else the name of the file.
    """
    if not root.is_dir():
        yield from intake.whole(_document(root, root.name, intake))
        return
    for path in texts(root):
        yield from intake.whole(_document(path, path.relative_to(root).as_posix(), intake))


def texts(root: Path) -> Iterator[Path]:
    """Yield the files that `documents` reads, in its order."""
    return (path for path in walk(root) if path == root or is_text(path))


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
