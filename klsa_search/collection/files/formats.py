"""File formats by suffix: documents, tables and archives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path, PurePath
from typing import Final, NamedTuple, cast

from klsa_search.collection.files.content import Content
from klsa_search.collection.folder import uncompressed_name
from klsa_search.collection.lines import head
from klsa_search.core.installation import is_installed
from klsa_search.core.wording import words

EXTRA: Final = "files"  # the extra that some formats need
TABLES: Final = {
    ".atom": "xml", ".bib": "references", ".ciw": "references", ".csv": "csv",
    ".enw": "references", ".geojson": "json", ".json": "json", ".jsonl": "jsonl",
    ".nbib": "references", ".ndjson": "jsonl", ".parquet": "parquet", ".ris": "references",
    ".rss": "xml", ".tsv": "tsv", ".xlsx": "xlsx", ".xml": "xml",
}  # fmt: skip
"""Formats of tables by suffix, of which each row is a document."""
_BINARY_TABLES: Final = ("parquet", "xlsx")


class FileFormat(NamedTuple):
    """A file format.

    name    value of `kind` in the metadata of its documents
    module  module of this package whose `read`, or the function after a colon, reads it, imported
            at the first file
    extra   whether it needs packages of the extra `files`
    is_text whether files are text in some encoding
    """

    name: str
    module: str
    extra: bool
    is_text: bool = True

    @property
    def is_sandboxed(self) -> bool:
        """Return whether files are parsed in a child process with limits; not if only decoded."""
        return self not in (_PROSE, _CODE)

    def read(self, path: Path, encoding: str | None = None) -> Iterator[Content]:
        """Yield the content of a file; Unreadable, TruncatedFile.

        encoding  of a text that declares none; by default detected
        """
        name, _, function = self.module.partition(":")
        module = import_module(f"klsa_search.collection.files.{name}")
        read = cast(Callable[..., Iterator[Content]], getattr(module, function or "read"))
        return read(path, encoding) if self.is_text else read(path)


_PROSE: Final = FileFormat("text", "plain", False)
_CODE: Final = FileFormat("code", "plain:read_code", False)
_DOCBOOK: Final = FileFormat("docbook", "docbook", True, is_text=False)
FORMATS: Final[dict[FileFormat, str]] = {
    _PROSE: "adoc asciidoc log org tex text txt",
    FileFormat("markdown", "markdown", False): "markdown md mdx qmd rmd",
    FileFormat("notebook", "markdown:read_notebook", False, is_text=False): "ipynb",
    FileFormat("rst", "plain:read_rst", False): "rst",
    FileFormat("subtitles", "plain:read_subtitles", False): "srt vtt",
    FileFormat("html", "html", True): "htm html xhtml",
    FileFormat("pdf", "pdf", True, is_text=False): "pdf",
    FileFormat("docx", "office:read_docx", False, is_text=False): "docx",
    FileFormat("pptx", "office:read_pptx", False, is_text=False): "pptx",
    FileFormat("odt", "office:read_odt", False, is_text=False): "odt ott",
    FileFormat("epub", "html:read_epub", True, is_text=False): "epub",
    _DOCBOOK: "dbk docbook",
    FileFormat("mail", "mail", True): "eml mbox",
    _CODE: "bash c cc clj cpp cs css cxx dart erl ex f90 go h hpp hs java jl js jsx kt lua m ml"
    " php pl proto ps1 py pyi r rb rs scala sh sql swift tsx ts vue",
}
_KINDS: Final = {
    f".{suffix}": kind for kind, suffixes in FORMATS.items() for suffix in suffixes.split()
}
_NAMES: Final = words(
    "authors changelog changes contributing copying history install licence license news "
    "notice readme todo"
)
"""Names of texts without a suffix."""
_DOCBOOK_START: Final = re.compile(
    r"""-//OASIS//\w+ (?:Simplified )?DocBook|xmlns(?::\w+)?=["']http://docbook\.org/ns/docbook"""
)


def is_mailbox(path: PurePath) -> bool:
    """Return whether a file holds several messages: an mbox, compressed or not."""
    return uncompressed_name(path).endswith(".mbox")


def format_of(path: PurePath) -> FileFormat | None:
    """Return the format of a file by its suffix, compressed or not, or by a name such as README.

    None if it is unknown.
    """
    name = uncompressed_name(path)
    return _PROSE if name in _NAMES else _KINDS.get(PurePath(name).suffix)


def table_of(path: PurePath) -> str | None:
    """Return the format of a table by its suffix, compressed or not; None if it is no table."""
    return TABLES.get(PurePath(uncompressed_name(path)).suffix)


def is_archive(path: PurePath) -> bool:
    """Return whether a file is an archive of files, rather than one compressed file."""
    is_compressed = format_of(path) is not None or table_of(path) is not None
    return path.suffix.lower() == ".zip" and not is_compressed


def missing_extra(path: PurePath) -> str | None:
    """Return the extra whose packages a file needs and that is not installed; None if none is."""
    kind = format_of(path)
    binary = "tables" if table_of(path) in _BINARY_TABLES else None
    needed = EXTRA if kind is not None and kind.extra else binary
    return needed if needed and not is_installed(needed) else None


def is_docbook(path: Path) -> bool:
    """Return whether a file with a suffix of XML begins as DocBook, which can be read."""
    return (
        table_of(path) == "xml"
        and _DOCBOOK_START.search(head(path, 4096)) is not None
        and is_installed(EXTRA)
    )


def format_of_file(path: Path) -> FileFormat:
    """Return the format of a file that is read as a text: that of its suffix, or plain text."""
    return _DOCBOOK if is_docbook(path) else format_of(path) or _PROSE
