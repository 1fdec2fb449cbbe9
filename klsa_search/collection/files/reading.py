"""Folders of document files: one document per file, or per section."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from klsa_search.collection.files.content import Content, Unreadable, check_storable
from klsa_search.collection.files.formats import EXTRA, format_of, format_of_suffix
from klsa_search.collection.files.sandbox import Sandbox
from klsa_search.collection.folder import display_path, record_unread, uncompressed_name, walk
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, Unread
from klsa_search.core.extras import require


def folder_documents(
    root: Path, intake: Intake, links: bool = False, sections: bool = False
) -> Iterator[Document]:
    """Stream the documents of a folder or a file; a file with an unknown suffix is text.

    The id is the path below the folder, with slashes, followed by #1, #2 if a file has several
    documents (mails or sections). The title is that in the file, else the file name. Metadata has
    `kind` and `path`, and if known `author`, `date` and `language`. Files that cannot be read, or
    exceed the limits of `sandbox`, are refused. Memory: one file.
    """
    with Sandbox() as sandbox:
        for path in paths(root, links):
            name = display_path(path, root) if path != root else path.name
            read = partial(_documents, path, name, sections, intake, sandbox)
            documents = intake.cache.documents(path, read) if intake.cache else read()
            yield from intake.read_file(documents)


def paths(root: Path, links: bool = False, unread: Unread | None = None) -> Iterator[Path]:
    """Yield the files that `folder_documents` reads, in its order.

    Others, including those whose packages are missing, are added to `unread`; MissingExtra if
    `root` is such a file.
    """
    for path in walk(root, links, unread):
        if path == root:
            if format_of_suffix(path).extra:
                require(EXTRA)
            yield path
            continue
        kind = format_of(path)
        if kind is None or kind.is_unavailable:
            record_unread(path, root, unread)
        else:
            yield path


def _documents(
    path: Path, name: str, sections: bool, intake: Intake, sandbox: Sandbox
) -> Iterator[Document]:
    kind = format_of_suffix(path)
    number = 0
    try:
        contents = (
            sandbox.read(kind, path) if kind.is_sandboxed else map(check_storable, kind.read(path))
        )
        for content in contents:
            metadata = {**content.metadata, "kind": kind.name, "path": name}
            title = content.title or path.name.split(".")[0]
            parts = _sections(content, title) if sections else [(title, content.text)]
            several = sections or path.suffix.lower() == ".mbox"
            for heading, text in parts:
                number += 1
                yield Document(
                    id=f"{name}#{number}" if several else name,
                    title=heading,
                    text=text,
                    metadata=metadata,
                    origin=f"{path}:1",
                )
    except Unreadable as fault:
        suffix = PurePosixPath(uncompressed_name(path)).suffix or "without suffix"
        detail = f" ({fault.detail})" if fault.detail else ""
        message = f"{path}:{fault.line}: {fault.kind}{detail}"
        intake.refuse(message, kind=f"{suffix}: {fault.kind}")


def _sections(content: Content, title: str) -> list[tuple[str, str]]:
    """Return title and text of each section; content without sections has one."""
    return [
        (f"{title}: {heading}" if heading and heading != title else title, text)
        for heading, text, _ in content.sections
    ] or [(title, "")]
