"""PDF, read with PDFium, which recovers most damaged files and has one type of exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from klsa_search.collection.files.content import (
    Content,
    Section,
    Unreadable,
    iso_date,
    metadata_of,
    normalise_space,
)
from klsa_search.collection.lines import read_decompressed

_DATE: Final = re.compile(r"D:(\d{4})(\d\d)(\d\d)")
_PASSWORD: Final = "password"  # noqa: S105 - a word of messages


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document with one section per page."""
    data = read_decompressed(path)
    title, sections, metadata = _read(data)
    if not any(section.text for section in sections):
        raise Unreadable("contains no text", f"pages, perhaps of pictures alone: {len(sections)}")
    yield Content(title=title, sections=sections, metadata=metadata, numbered=True)


def _read(data: bytes) -> tuple[str, list[Section], dict[str, str]]:
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(data) as document:
            info = document.get_metadata_dict()
            sections = []
            for number in range(len(document)):
                page = document[number]
                text = page.get_textpage()
                sections.append(Section(f"page {number + 1}", _text(text.get_text_bounded())))
                text.close()
                page.close()
    except pypdfium2.PdfiumError as error:
        locked = _PASSWORD in str(error).lower()
        raise Unreadable("needs a password" if locked else "is damaged", error) from None
    date = _DATE.match(info.get("CreationDate", ""))
    metadata = metadata_of(
        author=_text(info.get("Author")), date=iso_date("-".join(date.groups()) if date else "")
    )
    return normalise_space(_text(info.get("Title"))).replace("\n", " "), sections, metadata


def _text(text: str | None) -> str:
    """Return the text without non-characters and hyphens at line ends (U+FFFE of PDFium)."""
    kept = re.sub(r"[￾\x02]\r?\n?", "", text or "")
    return normalise_space(re.sub(r"[\0￿\ud800-\udfff]", "", kept))
