"""Jupyter notebooks: their text in Markdown and their code, without outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from klsa_search.collection.files.content import Content, SectionBuilder, Unreadable
from klsa_search.collection.files.markdown import add_markdown
from klsa_search.collection.lines import read_decompressed


def read(path: Path) -> Iterator[Content]:
    """Read a notebook as one document; its title is a heading at the beginning."""
    try:
        cells = [(cell["cell_type"], _source(cell)) for cell in _cells(path)]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Unreadable("is damaged", f"no cells of a notebook: {error!r}") from None
    builder, title = SectionBuilder(), ""
    for number, (kind, source) in enumerate(cells):
        if kind == "code":
            builder.add_code(source)
        elif kind in ("markdown", "heading"):
            heading = add_markdown(source, builder)
            title = title or (heading if number == 0 else "")
            builder.add("\n\n")
    yield Content(title=title, sections=builder.sections())


def _cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook; versions before 4 have them in worksheets."""
    notebook = json.loads(read_decompressed(path))
    sheets = notebook.get("worksheets", [notebook])
    return [cell for sheet in sheets for cell in sheet["cells"]]


def _source(cell: dict[str, Any]) -> str:
    lines = cell["source"] if "source" in cell else cell["input"]
    text = lines if isinstance(lines, str) else "".join(lines)
    return f"{'#' * cell.get('level', 1)} {text}" if cell["cell_type"] == "heading" else text
