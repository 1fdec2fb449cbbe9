"""Kinds of files by suffix, and the modules that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, cast

from klsa_search.collection.files.content import Content
from klsa_search.collection.folder import uncompressed_name
from klsa_search.core.extras import is_installed

EXTRA: Final = "files"
"""The extra without which some kinds are not read."""


class FileFormat(NamedTuple):
    """A kind of files.

    name    as documents have it in their metadata
    module  module of this package whose `read` reads it; imported when the first file is
    extra   whether that needs packages of the extra `files`
    """

    name: str
    module: str
    extra: bool

    @property
    def is_sandboxed(self) -> bool:
        """Whether more than decoding is done, and so in a process with limits."""
        return self not in (_PROSE, _CODE)

    @property
    def is_unavailable(self) -> bool:
        """Whether it cannot be read here for want of packages."""
        return self.extra and not is_installed(EXTRA)

    def read(self, path: Path) -> Iterator[Content]:
        """Read a file; Unreadable, Cut."""
        module = import_module(f"klsa_search.collection.files.{self.module}")
        return cast(Callable[[Path], Iterator[Content]], module.read)(path)


_PROSE: Final = FileFormat("text", "plain", False)
_CODE: Final = FileFormat("code", "code", False)
_SUFFIXES: Final[dict[FileFormat, str]] = {
    _PROSE: "adoc org tex text txt",
    FileFormat("markdown", "markdown", False): "markdown md",
    FileFormat("rst", "rst", False): "rst",
    FileFormat("html", "html", True): "htm html xhtml",
    FileFormat("pdf", "pdf", True): "pdf",
    FileFormat("docx", "docx", False): "docx",
    FileFormat("epub", "epub", True): "epub",
    FileFormat("mail", "mail", True): "eml mbox",
    _CODE: "bash c cc clj cpp cs css cxx dart erl ex f90 go h hpp hs java jl js jsx kt lua m ml"
    " php pl proto ps1 py pyi r rb rs scala sh sql swift tsx ts vue",
}
_KINDS: Final = {
    f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}


def format_of(path: Path) -> FileFormat | None:
    """Kind of a file by its suffix, packed or not; None where it is none of them."""
    return _KINDS.get(Path(uncompressed_name(path)).suffix)


def is_code(path: Path) -> bool:
    """Whether it holds source code."""
    return format_of(path) == _CODE


def format_of_suffix(path: Path) -> FileFormat:
    """Return the kind of a named file: that of its suffix, or text."""
    return format_of(path) or _PROSE
