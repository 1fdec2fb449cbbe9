"""Bibliographies: RIS, MEDLINE (.nbib) and EndNote (.enw), whose lines have tags, and BibTeX."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document

REFERENCES_START: Final = re.compile(
    r"\s*(?:TY {2}- ?\S|PMID {0,2}- ?\d|%0 \S)"
    r"|(?:\s|%.*)*@(?:(?i:string|preamble|comment)\s*\{|[A-Za-z]+\s*\{\s*[^\s,{}()=]+\s*,)"
)
"""Match what only a bibliography begins with; code and prose may begin with `@name (`."""
BIBTEX_START: Final = re.compile(r"(?:\s|%.*)*@[A-Za-z]+\s*[{(]")
"""Match the beginning of BibTeX in a bibliography."""

_RIS_TAG: Final = re.compile(r"([A-Z][A-Z0-9])  -(?:\s(.*)|\Z)")
_MEDLINE_TAG: Final = re.compile(r"(?=[A-Z][A-Z0-9 ]{3}-)([A-Z][A-Z0-9]{1,3}) *-(?: (.*)|\s*\Z)")
_ENDNOTE_TAG: Final = re.compile(r"%([^a-z\s])(?:\s(.*)|\Z)")
_RECORD_STARTS: Final = frozenset(["TY", "PMID", "0"])
"""Tags that begin a record."""
_FIRST_TAG: Final = re.compile(r"\s*(?:TY( {0,2})-|(PMID) {0,2}-|%0) ?\S")
_HEADING: Final = re.compile(r"(?:Provider|Database|Content): |Record #\d|\d+\.\s*$")
"""Lines that JSTOR, Embase and others write above records."""

_RIS: Final[Mapping[str, str]] = {
    "type": "TY", "id": "ID", "title": "TI T1 BT CT", "text": "AB N2", "author": "AU A1",
    "editor": "ED A2", "year": "PY", "date": "DA Y1", "keywords": "KW", "journal": "JF T2 JO",
    "booktitle": "BT", "doi": "DO", "url": "UR", "volume": "VL", "issue": "IS", "pages": "SP",
    "publisher": "PB", "language": "LA", "issn": "SN", "notes": "N1",
}  # fmt: skip
_MEDLINE: Final[Mapping[str, str]] = {
    "type": "PT", "id": "PMID", "title": "TI BTI", "text": "AB", "author": "FAU AU",
    "editor": "FED ED", "date": "DP", "keywords": "MH OT", "journal": "JT TA", "doi": "LID AID",
    "volume": "VI", "issue": "IP", "pages": "PG", "publisher": "PB", "language": "LA",
    "issn": "IS",
}  # fmt: skip
_ENDNOTE: Final[Mapping[str, str]] = {
    "type": "0", "title": "T", "text": "X", "author": "A", "editor": "E", "year": "D", "date": "8",
    "keywords": "K", "journal": "J", "booktitle": "B", "doi": "R", "url": "U", "volume": "V",
    "issue": "N", "pages": "P", "publisher": "I", "language": "G", "issn": "@", "notes": "Z",
    "short_title": "!", "section": "&", "address": "+", "file": ">", "accessed": "[",
    "database": "~",
}  # fmt: skip
"""Tags by field, in each format; the first tag that a record has is used. Others stay as fields."""
_LISTS: Final = frozenset(["author", "editor", "keywords"])


def documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one bibliography: a reference each, with its abstract as text.

    The ID is that of the reference, or its number in a file in which one has none. Authors,
    editors and keywords are lists. Encodings are detected as in text files. What is not a reference
    is refused. Memory: the file.
    """
    decoded = decoded_lines(path, intake.options.encoding, partial(intake.note, path))
    text = io.StringIO("".join(line for _, line in decoded), newline=None).getvalue()
    lines = text.split("\n")
    first = next(filter(None, map(_FIRST_TAG.match, lines)), None)
    if BIBTEX_START.match(text) or (first is None and _LINE_ENTRY.search(text)):
        references = _bibtex(path, text, intake)
    else:
        references = _tagged(path, lines, first, intake)
    # Columns are decided by the names in the first record.
    records = [
        (f"{path}:{line}", {"title": "", "text": "", **fields}) for line, fields in references
    ]
    keys = sum("id" in record for _, record in records)
    if 0 < keys < len(records):
        intake.note(
            path,
            f"{len(records) - keys:,} of {len(records):,} references have no key: all are "
            "numbered, and the keys are in `reference`",
        )
        for _, record in records:
            if "id" in record:
                record["reference"] = record.pop("id")
    yield from intake.documents(path, records)


def _tagged(
    path: Path, lines: Sequence[str], first: re.Match[str] | None, intake: Intake
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of its first line, fields) of each record of RIS, MEDLINE or EndNote.

    first  match of `_FIRST_TAG` in the first record
    Lines outside records are refused, once until the next record: CollectionError unless skipping.
    """
    tag_pattern, tags_by_field = _RIS_TAG, _RIS
    if first is not None and first[2]:
        tag_pattern, tags_by_field = _MEDLINE_TAG, _MEDLINE
    elif first is not None and first[1] is None:
        tag_pattern, tags_by_field = _ENDNOTE_TAG, _ENDNOTE
    elif first is not None and first[1] != "  ":
        tag_pattern = re.compile(_RIS_TAG.pattern.replace("  -", f"{first[1]}-"))
    values: dict[str, list[str]] = {}
    begin, tag, is_after_blank, is_refused = 1, "", False, False
    for number, line in enumerate(lines, start=1):
        match = tag_pattern.match(line.rstrip())
        starts = match is not None and match[1] in _RECORD_STARTS
        ends = match is not None and match[1] == "ER"
        if match is None and tags_by_field is _MEDLINE and is_after_blank:
            ends = not line[:1].isspace()  # a line of MEDLINE is continued with an indent
        if values and (starts or ends):
            yield begin, _with_lists_and_texts(values, tags_by_field)
            values = {}
        if starts:
            begin, is_refused = number, False
        content = line.strip()
        if match is not None and (starts or values):
            tag = match[1]
            values.setdefault(tag, []).append((match[2] or "").strip())
        elif content and values:
            if tag in tags_by_field["keywords"].split() and not line[0].isspace():
                values[tag].append(content)  # EndNote writes each keyword in a line
            else:
                values[tag][-1] = f"{values[tag][-1]} {content}".strip()
        elif content and not is_refused and not (match and ends) and not _HEADING.match(line):
            is_refused = True
            intake.refuse(
                f"{path}:{number}: no reference begins, as with `TY  - JOUR`, `PMID- 1` or "
                f"`%0 Book`, before {content[:40]!r}"
            )
        is_after_blank = not content
    if values:
        yield begin, _with_lists_and_texts(values, tags_by_field)


def _with_lists_and_texts(
    values: Mapping[str, Sequence[str]], tags_by_field: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of a record: lists of names and keywords, otherwise a text if it has one.

    values         of each tag, blank ones too, in the order of the file
    tags_by_field  tags separated by spaces, as `_RIS`
    """
    fields = {tag: list(filter(None, texts)) for tag, texts in values.items()}
    alternatives = {field: tags.split() for field, tags in tags_by_field.items()}
    record: dict[str, Any] = {}
    for field, tags in alternatives.items():
        if field == "doi" and tags_by_field is _MEDLINE:  # which has other identifiers there
            suffix = " [doi]"
            dois = [text for tag in tags for text in fields.get(tag, ()) if text.endswith(suffix)]
            field_values = [text.removesuffix(suffix) for text in dois[:1]]
        elif field == "keywords":  # of PubMed: headings, and those of the authors
            field_values = list(dict.fromkeys(text for tag in tags for text in fields.get(tag, ())))
        else:
            field_values = next((fields[tag] for tag in tags if fields.get(tag)), [])
        if field in ("date", "year"):
            field_values = [text.rstrip("/") for text in field_values]
        if field_values:
            record[field] = _list_or_text(field, field_values)
    used = {tag for tags in alternatives.values() for tag in tags}
    others = {tag: texts for tag, texts in fields.items() if tag not in used and texts}
    return record | {tag: _list_or_text(tag, texts) for tag, texts in others.items()}


def _list_or_text(field: str, values: list[str]) -> str | list[str]:
    """Return the values of a field, at least one, or a text if it has one."""
    if field == "text":
        return "\n".join(values)
    if field in _LISTS or (len(values) > 1 and field not in ("id", "title")):
        return values
    return values[0]


_ENTRY: Final = re.compile(r"@\s*([A-Za-z]+)\s*([{(])\s*")
_LINE_ENTRY: Final = re.compile(
    r"^[ \t]*(?=@[ \t]*(?:(?:string|comment|preamble)[ \t]*[{(]"
    r"|[a-z]+[ \t]*\{[ \t]*[^\s,{}()=\"]*[ \t]*(?:,|$)))",
    re.MULTILINE | re.IGNORECASE,
)
"""Beginning of an entry in a line of its own: the former one ends before it."""
_FIELD: Final = re.compile(r"\s*,?\s*([^\s=,{}()\"]+)\s*=\s*")
_KEY: Final = re.compile(r"([^,{}=\s](?:[^,{}=\n]*[^,{}=\s])?)\s*(?:,|(?=[})]))")
_WORD: Final = re.compile(r"[^\s,{}#()]+")
_CONCATENATION: Final = re.compile(r"\s*#\s*")
_GROUP_SIGN: Final = re.compile(r'\\.|[{}"]', re.DOTALL)
_VERBATIM: Final = frozenset(["doi", "file", "id", "url"])
_NO_ENTRIES: Final = frozenset(["comment", "preamble"])
_BIBTEX_NAMES: Final = {"abstract": "text", "journaltitle": "journal", "keyword": "keywords"}
_ACCENTS: Final = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328",
    "r": "\u030a", "d": "\u0323",
}  # fmt: skip
_LETTERS: Final = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "aa": "å", "AA": "Å", "i": "ı", "j": "ȷ", "textendash": "–", "textemdash": "—",
    "textless": "<", "textgreater": ">", "textmu": "µ", "textbar": "|",
    "textdegree": "°", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "textregistered": "®", "texttrademark": "™", "textpm": "±",
    "texttimes": "×", "textalpha": "α", "textbeta": "β",
}  # fmt: skip
_ACCENT: Final = re.compile(
    r"\\(?:([`'^~\"=.])\s*|([uvHckrd])(?![A-Za-z])\s*)\{?\s*(\\[ij](?![A-Za-z])|[^\W\d_])\s*\}?"
)
_LETTER: Final = re.compile(
    rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])\s?"
)
_SPACING: Final = re.compile(r"\\[-/,;:! \\]")
_COMMAND: Final = re.compile(r"\\(?:[A-Za-z]+\*?\s*(?=\{)|(?=[A-Za-z]))")


def _bibtex(path: Path, text: str, intake: Intake) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of its first line, fields) of each entry of BibTeX.

    An entry with a fault is refused: CollectionError unless skipping. Cost: linear in the text.
    """
    macros: dict[str, str] = {}
    limits = [entry.end() for entry in _LINE_ENTRY.finditer(text)] + [len(text)]
    number, counted, at = 1, 0, 0
    while entry := _ENTRY.search(text, at):
        number += text.count("\n", counted, entry.start())
        kind, counted, at = entry[1].lower(), entry.start(), entry.end()
        if kind in _NO_ENTRIES:
            continue
        limit = limits[bisect_right(limits, entry.start())]
        fields: dict[str, str] = {}
        key = _KEY.match(text, at, limit) if kind != "string" else None
        if key is not None:
            fields, at = {"id": key[1]}, key.end()
        fault = ""
        while not fault and (field := _FIELD.match(text, at, limit)):
            value, at = _value(text, field.end(), limit, macros)
            if at > limit:
                fault = f"the field {field[1]!r} has no end; close its brace or quote"
            name = field[1].lower()
            if name in fields:  # as BibTeX does
                intake.note(path, f"of several fields {name!r} of an entry, the first is used")
            fields.setdefault(name, value)
        if not fault:
            fault, at = _end_of_entry(text, at, limit, entry[2])
        if fault:
            intake.refuse(f"{path}:{number}: in {fields.get('id', kind)!r} {fault}")
            at = limit
        elif kind == "string":
            macros |= fields
        else:
            yield number, {"type": kind, **_entry(fields)}


def _end_of_entry(text: str, at: int, limit: int, opening: str) -> tuple[str, int]:
    """Return the fault of what follows the last field, "" if none, and where the entry ends."""
    closing = "}" if opening == "{" else ")"
    end = re.compile(rf"\s*,?\s*\{closing}").match(text, at, limit)
    if end is None:
        following = " ".join(text[at : min(at + 40, limit)].split())
        return f"{closing!r} or a field is expected before {following!r}", limit
    if field := _FIELD.match(text, end.end(), limit):
        return f"the entry ends before its field {field[1]!r}; remove a brace", limit
    return "", end.end()


def _entry(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an entry as text, and names and keywords as lists."""
    record: dict[str, Any] = {}
    for name, value in fields.items():
        name = _BIBTEX_NAMES.get(name, name)
        if name in ("author", "editor"):
            names = map(_text_of_tex, _split_outside_braces(value))
            record[name] = [person for person in names if person not in ("", "others")]
        elif name == "keywords":
            words = map(_text_of_tex, re.split(r"[,;]", value))
            record[name] = list(filter(None, words))
        else:
            record[name] = value if name in _VERBATIM else _text_of_tex(value)
    return record


def _split_outside_braces(value: str) -> list[str]:
    """Return the names that `and` separates; within braces it is part of a name."""
    names, begin, depth = [], 0, 0
    for match in re.finditer(r"\\.|[{}]|\s+and\s+", value, re.DOTALL):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0 and match[0].strip() == "and":
            names.append(value[begin : match.start()])
            begin = match.end()
    return [*names, value[begin:]]


def _value(text: str, at: int, limit: int, macros: Mapping[str, str]) -> tuple[str, int]:
    """Return the value of a field that begins at a character, and where it ends.

    limit  end of the entry at the latest; a value without end ends beyond it
    """
    parts: list[str] = []
    while at < limit:
        if text[at] in '{"':
            end = _end_of_group(text, at, limit)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif word := _WORD.match(text, at, limit):
            parts.append(macros.get(word[0].lower(), word[0]))
            at = word.end()
        following = _CONCATENATION.match(text, at, limit)
        if following is None:
            break
        at = following.end()
    return "".join(parts), at


def _end_of_group(text: str, at: int, limit: int) -> int:
    """Return where the brace or quote at a character is closed, or the limit."""
    depth = 0
    for match in _GROUP_SIGN.finditer(text, at + 1, limit):
        sign = match[0]
        if depth == 0 and sign == {"{": "}", '"': '"'}[text[at]]:
            return match.start()
        depth += (sign == "{") - (sign == "}")
    return limit


def _text_of_tex(value: str) -> str:
    r"""Return a value of TeX as text.

    >>> _text_of_tex(r"{\"U}ber {P}umpen \& caf{\'e}s -- {\o}")
    'Über Pumpen & cafés – ø'
    """
    from unicodedata import normalize

    def accented(match: re.Match[str]) -> str:
        letter = match[3].removeprefix("\\")
        return normalize("NFC", letter + _ACCENTS[match[1] or match[2]])

    text = _LETTER.sub(lambda match: _LETTERS[match[1]], _ACCENT.sub(accented, value))
    text = re.sub(r"\\([&%$#_{}])", lambda match: match[1] if match[1] not in "{}" else "", text)
    text = _SPACING.sub(lambda match: "" if match[0] in (r"\-", r"\/") else " ", text)
    text = _COMMAND.sub("", text.replace("---", "—").replace("--", "–").replace("~", " "))
    return " ".join(re.sub(r"[{}]", "", text).split())
