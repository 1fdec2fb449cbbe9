"""Format detection of files and folders by content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

from klsa_search.collection import json_files
from klsa_search.collection.columns import COMMON_NAMES, PLAIN, USUAL_NAMES, may_name_ids
from klsa_search.collection.files.formats import (
    TABLES,
    format_of,
    format_of_file,
    is_archive,
    is_docbook,
    table_of,
)
from klsa_search.collection.folder import (
    EVERYTHING,
    IGNORE_FILE,
    Selection,
    list_files,
    uncompressed_name,
    walk,
)
from klsa_search.collection.lines import decoded_head, head, head_bytes, wide_encoding_of
from klsa_search.collection.model import Unread
from klsa_search.collection.reading_options import FORMATS, FormatName
from klsa_search.collection.references import REFERENCES_START
from klsa_search.collection.table_rows import is_header
from klsa_search.errors import CollectionError

SAMPLE = 50  # files of a folder that are inspected
_TABLE: Final = 65_536  # bytes that show whether a text is a table
MAX_SAMPLE = 5_000  # limit if none of them is recognised
SMART_START = re.compile(r"\.I[ \t]+\S+[ \t\r]*$", re.MULTILINE)
TREC_START = re.compile(r"^[ \t]*<DOC>", re.IGNORECASE | re.MULTILINE)
_XML_START = re.compile(r"<\?xml\s|<(?:rss|feed|add|mediawiki)\b")
_PAGE = re.compile(r"<(?:!doctype\s+)?(?:html|svg)\b", re.IGNORECASE)
_DELIMITED = (("csv", ","), ("tsv", "\t"), ("csv", ";"), ("csv", "|"))
CORPUS: Final = re.compile(r"corpus\.jsonl")  # documents of BEIR
SMART_QUERIES: Final = re.compile(r".*\.qry|query.*")
SMART_JUDGEMENTS: Final = re.compile(r".*\.(?:rel|qrels?)|qrels.*|cranqrel")
# Files that describe a collection and are not part of it.
DESCRIPTIONS = ("changelog", "copying", "licence", "license", "notice", "readme")
SIDECARS = ("qrels", "queries", "topics")


def detect_format(path: Path, selection: Selection = EVERYTHING) -> str:
    """Return the format of a file or folder; CollectionError if it is unknown or ambiguous."""
    if not path.is_dir():
        format_ = table_format(path) or sniff(path)
        if format_:
            return format_
        kind = format_of(path)
        # A single plain text file is hardly meant to be the whole collection.
        if is_archive(path) or is_docbook(path) or (kind and kind.name not in ("code", "text")):
            return "text"
        if advice := _advice(path):
            raise CollectionError(f"{path}: unknown format, {advice}")
        raise CollectionError(
            f"{path}: unknown format, {_description(path)}; name its format (text reads it as one "
            f"document): {', '.join(get_args(FormatName))}"
        )
    if named_files(path, CORPUS, selection):
        return "beir"
    if smart_documents(path, selection):
        return "smart"
    formats: dict[str, Path] = {}
    texts: dict[bool, Path] = {}
    unread = Unread()
    for number, file in enumerate(walk(path, selection, unread)):
        if number >= (SAMPLE if formats or texts else MAX_SAMPLE):
            break
        format_ = sniff(file)
        kind = format_of(file)
        is_attached = (kind and kind.name == "code") or is_archive(file) or table_format(file)
        is_description = is_attached or uncompressed_name(file).startswith(DESCRIPTIONS)
        is_auxiliary = is_sidecar(path, file) or bool(is_description)
        if format_ and not is_auxiliary:
            formats.setdefault(format_, file)
        elif not format_ and (kind or table_of(file) or is_archive(file)):
            texts.setdefault(is_auxiliary, file)
    # A README or a script next to tables describes them; a folder of only those is text.
    if False in texts or (texts and not formats):
        formats["text"] = texts.get(False) or texts[True]
    if len(formats) == 1:
        return next(iter(formats))
    if formats and formats.keys() <= {"text", *TABLES.values()}:
        return "text"  # which reads the rows of tables, too
    seen = " and ".join(f"{name} ({file.name})" for name, file in sorted(formats.items()))
    raise CollectionError(
        f"{path}: contains {seen or 'no file of a known format'}{_left_out(unread)}; "
        f"name the format or the file: {', '.join(FORMATS)}"
    )


def _left_out(unread: Unread) -> str:
    """Return which files of a folder are left out, for a message."""
    facts = []
    if "linked" in unread.kinds:
        facts.append(
            "symbolic links are only followed with --follow-links, in Python follow_links=True"
        )
    if any(IGNORE_FILE in kind for kind in unread.kinds):
        facts.append(
            f"files that {IGNORE_FILE} names are left out; --exclude '!*' reads them, in Python "
            "exclude=['!*']"
        )
    return f" ({'; '.join(facts)})" if facts else ""


def sniff(path: Path) -> str | None:
    """Return the format of one file other than text, such as smart, trec or json; None if unknown.

    A table is recognised by a header with an id column and `title` or `text`. The suffix decides
    only if the content does not, so that an invalid first line is reported as such.
    """
    if format_of_file(path).name in ("docbook", "markdown", "notebook"):  # may begin as XML or JSON
        return None
    start = head(path).lstrip()
    by_suffix = table_of(path)
    if SMART_START.match(start):
        return "smart"
    record = TREC_START.search(start)
    if record and "<docno>" in start[record.end() :].lower():
        return "trec"
    is_xml = _XML_START.match(start) or (by_suffix == "xml" and start.startswith("<"))
    if is_xml and not _PAGE.search(start):
        return "xml"
    is_text = format_of_file(path).name == "text"
    if by_suffix == "references" or (is_text and REFERENCES_START.match(start)):
        return "references"
    format_ = json_files.json_format(path)
    # By its suffix, one object in one line is a document, whatever is in it.
    if format_ == "json" and by_suffix == "jsonl":
        return format_ if start.startswith("[") or "\n" in start.strip() else "jsonl"
    if format_ is not None:
        return format_
    if by_suffix == "json" or (by_suffix == "jsonl" and not start.startswith("[")):
        return by_suffix
    header = re.split("[\r\n]", start, maxsplit=1)[0]
    for table, separator in _DELIMITED:
        columns = {cell.strip().strip('"').lower() for cell in header.split(separator)}
        if by_suffix == table or (columns & {"id", "_id"} and len(columns & set(USUAL_NAMES)) > 1):
            # Spreadsheets write Unicode text with tabs, quotes and UTF-16.
            return "csv" if wide_encoding_of(path) else table
    return _table_in(path) if is_text else None


def _table_in(path: Path) -> str | None:
    """Return the format of a text whose lines have as many cells by tabs, below a header, or None.

    Prose has commas, too. Two columns may be names and values, unless both have the name of a
    field.
    """
    encoding = wide_encoding_of(path)
    head_lines = decoded_head(head_bytes(path, _TABLE), encoding).splitlines()[:SAMPLE]
    lines = list(filter(str.strip, head_lines))
    cells = [cell.strip(' "') for cell in lines[0].split("\t")] if len(lines) > 2 else []
    names_field = [
        may_name_ids(name) or any(PLAIN.common(role, [name]) for role in COMMON_NAMES)
        for name in cells
    ]
    is_wide = len(cells) > 2 or (len(cells) == 2 and all(names_field))
    has_rows = all(line.count("\t") == len(cells) - 1 for line in lines)
    if is_wide and has_rows and is_header(cells, PLAIN):
        return "csv" if encoding else "tsv"
    return None


def table_format(path: Path) -> str | None:
    """Return parquet or xlsx if a file is one, else None.

    A folder with such files is read as one of them only if the format is named, as they may lie
    among documents.
    """
    if uncompressed_name(path).endswith(".xlsx"):
        return "xlsx"
    return "parquet" if head_bytes(path, 4) == b"PAR1" else None


def smart_documents(folder: Path, selection: Selection = EVERYTHING) -> Path | None:
    """Return the documents of a SMART folder: the file with `.all` in its name or the only one."""
    smart = [file for file in list_files(folder, selection) if sniff(file) == "smart"]
    named = [file for file in smart if ".all" in file.name.lower()]
    candidates = named or smart
    return candidates[0] if len(candidates) == 1 else None


def is_sidecar(root: Path, file: Path) -> bool:
    """Return whether a file below `root` has queries or judgements rather than documents."""
    return file.relative_to(root).parts[0].lower().startswith(SIDECARS)


def named_files(
    folder: Path, pattern: re.Pattern[str], selection: Selection = EVERYTHING
) -> list[Path]:
    """Return the files in a folder whose names, without a suffix of compression, match."""
    files = list_files(folder, selection)
    return [file for file in files if pattern.fullmatch(uncompressed_name(file))]


def _description(path: Path) -> str:
    start = head(path, 512)
    if not start.strip():
        return "the file is empty"
    if "\0" in start or "�" in start:
        return "it begins with bytes that are not UTF-8 text"
    if start.lstrip().startswith("<"):
        return (
            "it looks like a page, which --format text reads, or like XML, which --format xml reads"
        )
    return f"it begins {start.strip().splitlines()[0][:60]!r}"


def _advice(path: Path) -> str | None:
    """Return what a file of a format that is not read is, and what to do; None for another."""
    start = head(path, 512)
    if head_bytes(path, 4) == b"\xd0\xcf\x11\xe0":
        start = "OLE\0"
    advice = next((advice for pattern, advice in _UNREAD if pattern.match(start)), None)
    if uncompressed_name(path).endswith((".yaml", ".yml")):
        advice = "it is YAML, which is not read: convert it to JSON, as with yq -o json"
    is_text = advice and "\0" not in start
    return f"{advice}, or read it as text: --format text" if is_text else advice


_UNREAD: Final = (
    (
        re.compile(r"SQLite format 3\0"),
        "it is a SQLite database, which is read as sqlite:FILE?table=NAME",
    ),
    (re.compile(r"\{\\rtf"), "it is RTF, which is not read: save it as DOCX, ODT or text"),
    (
        re.compile(r"OLE\0"),
        "it is a file of Office before 2007 or Outlook, which is not read: save it as XLSX, DOCX, "
        "PPTX or EML",
    ),
    (re.compile("BEGIN:VCALENDAR"), "it is a calendar, which is not read: export it as CSV"),
    (re.compile("BEGIN:VCARD"), "it has contacts, which are not read: export them as CSV"),
    (
        re.compile(r"(?:var |const |let )?[\w.]+ ?= ?[\[{]"),
        "it is JavaScript: remove what stands before the first bracket, and name it .json",
    ),
)
"""Beginnings of formats that are not read, and what to do."""
