"""CSV and TSV with a header line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from klsa_search.collection.intake import Intake, TruncatedFile, text_fault
from klsa_search.collection.lines import lines
from klsa_search.collection.mappings import ID_NAMES, TEXT_NAMES, Columns
from klsa_search.collection.model import Document
from klsa_search.errors import CollectionError

LONGEST_FIELD = 16 * 2**20  # characters; the default of csv, 128 K, is too small for documents
KNOWN_NAMES = (*ID_NAMES, "title", *TEXT_NAMES)


def documents(path: Path, intake: Intake, kind: Literal["csv", "tsv"]) -> Iterator[Document]:
    """Stream the documents of one file; the header names the columns.

    The header needs `title` or `text` (in any case), unless columns are named. Without `_id` or
    `id` the documents are numbered. Other columns become metadata, as strings. CSV follows RFC 4180
    strictly. TSV has no quoting: a tab always ends a field, a newline a record. A row with more or
    fewer cells than the header is refused; empty lines are skipped.
    """
    # The limit is global to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    rows = _rows(path, intake, kind)
    first = next(rows, None)
    if first is None:
        return
    header = _header(first[1], f"{path}:{first[0]}", intake.columns)
    numbered = intake.columns.id_in(header) is None and intake.may_number(path)
    for number, cells in rows:
        origin = f"{path}:{number}"
        fault = next(filter(None, map(text_fault, cells)), None)
        if fault:
            intake.refuse(f"{origin}: a cell {fault}")
        elif len(cells) != len(header):
            intake.refuse(f"{origin}: {len(cells)} cells under a header of {len(header)}")
        else:
            record = dict(zip(header, cells, strict=True))
            document = intake.document(record, origin, numbered=numbered)
            if document is not None:
                yield document


def _rows(path: Path, intake: Intake, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, cells) for each row that is not empty."""
    texts = (line for _, line in lines(path))
    if kind == "tsv":
        reader = csv.reader(texts, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.reader(texts, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                # The beginning of the next record is unknown.
                raise TruncatedFile(
                    f"{path}:{number}: a field of more than {csv.field_size_limit():,} "
                    "characters; is a quote left open?"
                ) from None
            intake.refuse(f"{path}:{number}: broken {kind.upper()} ({error})")
            continue
        if cells:
            yield number, cells


def _header(cells: list[str], origin: str, columns: Columns) -> list[str]:
    names = [cell.strip() for cell in cells]
    named = columns.names()
    names = [
        name.lower() if name.lower() in KNOWN_NAMES and name not in named else name
        for name in names
    ]
    seen = ", ".join(map(repr, names))
    if "" in names or len(set(names)) < len(names):
        raise CollectionError(f"{origin}: a column has no name, or two have the same: {seen}")
    missing = ", ".join(repr(name) for name in named if name not in names)
    if missing:
        raise CollectionError(f"{origin}: no column {missing} among {seen}", field="columns")
    if not (columns.title or columns.text or set(names) & {"title", *TEXT_NAMES}):
        raise CollectionError(
            f"{origin}: no column 'title' or 'text' among {seen}; name them "
            "(--title, --text, in Python columns=)"
        )
    return names
