"""Bibliographies: RIS, MEDLINE (.nbib), EndNote (.enw) and Web of Science (.ciw), and BibTeX."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document

REFERENCES_START: Final = re.compile(
    r"\s*(?:TY {2}- ?\S|PMID {0,2}- ?\d|%0 \S|FN \S.*\s+VR 1\.\d)"
    r"|(?:\s|%.*)*@(?:(?i:string|preamble|comment)\s*\{|[A-Za-z]+\s*\{\s*[^\s,{}()=]+\s*,)"
)
"""Match what only a bibliography begins with; code and prose may begin with `@name (`."""
_BIBTEX_START: Final = re.compile(r"(?:\s|%.*)*@[A-Za-z]+\s*[{(]")


class _TaggedFormat(NamedTuple):
    """A format of lines with tags.

    first   matches the first line of a record
    tag     pattern of the tag and value of a line
    begins  tag that begins a record
    lines   tags whose further lines are values of their own, and whether these have an indent
    fields  tags by field; the first tag that a record has is used, and others stay as fields
    """

    first: re.Pattern[str]
    tag: str
    begins: str
    lines: tuple[str, bool]
    fields: Mapping[str, str]


_FORMATS: Final = (
    _TaggedFormat(
        re.compile(r"\s*TY( {0,2})- ?\S"), r"([A-Z][A-Z0-9])  -(?:\s(.*)|\Z)", "TY",
        ("KW", False), {
        "type": "TY", "id": "ID", "title": "TI T1 BT CT", "text": "AB N2", "author": "AU A1",
        "editor": "ED A2", "year": "PY", "date": "DA Y1", "keywords": "KW", "journal": "JF T2 JO",
        "booktitle": "BT", "doi": "DO", "url": "UR", "volume": "VL", "issue": "IS", "pages": "SP",
        "publisher": "PB", "language": "LA", "issn": "SN", "notes": "N1",
    }),
    _TaggedFormat(
        re.compile(r"\s*PMID {0,2}- ?\S"),
        r"(?=[A-Z][A-Z0-9 ]{3}-)([A-Z][A-Z0-9]{1,3}) *-(?: (.*)|\s*\Z)", "PMID", ("", False), {
        "type": "PT", "id": "PMID", "title": "TI BTI", "text": "AB", "author": "FAU AU",
        "editor": "FED ED", "date": "DP", "keywords": "MH OT", "journal": "JT TA", "doi": "LID AID",
        "volume": "VI", "issue": "IP", "pages": "PG", "publisher": "PB", "language": "LA",
        "issn": "IS",
    }),
    _TaggedFormat(
        re.compile(r"\s*%0 ?\S"), r"%([^a-z\s])(?:\s(.*)|\Z)", "0", ("K", False), {
        "type": "0", "title": "T", "text": "X", "author": "A", "editor": "E", "year": "D",
        "date": "8", "keywords": "K", "journal": "J", "booktitle": "B", "doi": "R", "url": "U",
        "volume": "V", "issue": "N", "pages": "P", "publisher": "I", "language": "G", "issn": "@",
        "notes": "Z", "short_title": "!", "section": "&", "address": "+", "file": ">",
        "accessed": "[", "database": "~",
    }),
    _TaggedFormat(
        re.compile(r"PT [A-Z]\s*\Z"), r"([A-Z][A-Z0-9])(?: (.*)|\Z)", "PT",
        ("AF AU BE CR ED", True), {
        "type": "PT", "id": "UT", "title": "TI", "text": "AB", "author": "AF AU",
        "editor": "BE ED", "year": "PY", "keywords": "DE ID", "journal": "SO",
        "doi": "DI", "volume": "VL", "issue": "IS", "pages": "BP", "publisher": "PU",
        "language": "LA", "issn": "SN", "references": "CR",
    }),
)  # fmt: skip
_MEDLINE, _WEB_OF_SCIENCE = _FORMATS[1], _FORMATS[3]
_OUTSIDE: Final = re.compile(
    r"(?:Provider|Database|Content): |Record #\d|\d+\.\s*$|(?:FN|VR) |E[FR]\b"
)
"""Lines that JSTOR, Embase, Web of Science and others write above and below records."""
_LISTS: Final = frozenset(["author", "editor", "keywords"])
_BARE: Final = "neither title nor abstract; other fields are the text"


def documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one bibliography: a reference each, with its abstract as text.

    What is not a reference is refused. Memory: the file.
    """
    decoded = decoded_lines(path, intake.options.encoding, partial(intake.note, path))
    text = io.StringIO("".join(line for _, line in decoded), newline=None).getvalue()
    lines = text.split("\n")
    first = next(
        ((kind, match) for line in lines for kind in _FORMATS if (match := kind.first.match(line))),
        None,
    )
    if _BIBTEX_START.match(text) or (first is None and _LINE_ENTRY.search(text)):
        references = list(_bibtex(path, text, intake))
    else:
        kind, match = first or (_FORMATS[0], None)
        if match and kind is _FORMATS[0]:  # with as many blanks after other tags
            kind = kind._replace(tag=kind.tag.replace("  -", f"{match[1]}-"))
        references = list(_tagged(path, lines, kind, intake))
    records = []
    counts = Counter[str]()
    for line, fields in references:
        if not (fields.get("title") or fields.get("text")):
            values = [value for name, value in fields.items() if name not in ("id", "type")]
            texts = [value if isinstance(value, str) else ", ".join(value) for value in values]
            joined = "\n".join(filter(None, texts))
            counts[_BARE if joined else "no fields; left out"] += 1
            if not joined:
                continue
            fields = {**fields, "text": joined}
        # Columns are decided by the names in the first record.
        records.append((f"{path}:{line}", {"title": "", "text": "", **fields}))
    for fact, count in counts.items():
        intake.note(path, f"{count:,} of {len(references):,} references: {fact}")
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
    path: Path, lines: Sequence[str], kind: _TaggedFormat, intake: Intake
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of its first line, fields) of each record of a format with tags.

    Lines outside records are refused, once until the next record: CollectionError unless skipping.
    """
    pattern = re.compile(kind.tag)
    tags_of_lines, are_indented = kind.lines[0].split(), kind.lines[1]
    values: dict[str, list[str]] = {}
    begin, tag, is_after_blank, is_refused = 1, "", False, False
    for number, line in enumerate(lines, start=1):
        match = pattern.match(line.rstrip())
        starts = match is not None and match[1] == kind.begins
        ends = match is not None and match[1] == "ER"
        if match is None and kind is _MEDLINE and is_after_blank:
            ends = not line[:1].isspace()  # a line of MEDLINE is continued with an indent
        if values and (starts or ends):
            yield begin, _fields(values, kind)
            values = {}
        if starts:
            begin, is_refused = number, False
        content = line.strip()
        if match is not None and (starts or values):
            tag = match[1]
            values.setdefault(tag, []).append((match[2] or "").strip())
        elif content and values:
            if tag in tags_of_lines and line[0].isspace() == are_indented:
                values[tag].append(content)
            else:
                values[tag][-1] = f"{values[tag][-1]} {content}".strip()
        elif content and not is_refused and not (match and ends) and not _OUTSIDE.match(line):
            is_refused = True
            intake.refuse(
                f"{path}:{number}: no reference begins, as with `TY  - JOUR`, `PMID- 1`, "
                f"`%0 Book` or `PT J`, before {content[:40]!r}"
            )
        is_after_blank = not content
    if values:
        yield begin, _fields(values, kind)


def _fields(values: Mapping[str, Sequence[str]], kind: _TaggedFormat) -> dict[str, Any]:
    """Return the fields of a record: lists of names and keywords, otherwise a text if it has one.

    values  of each tag, blank ones too, in the order of the file
    """
    by_tag = {tag: list(filter(None, texts)) for tag, texts in values.items()}
    record: dict[str, Any] = {}
    for field, tags in kind.fields.items():
        all_of_tags = [by_tag.get(tag, []) for tag in tags.split()]
        texts_of_field = next(filter(None, all_of_tags), [])
        if field == "doi" and kind is _MEDLINE:  # which has other identifiers there
            dois = [text for texts in all_of_tags for text in texts if text.endswith(" [doi]")]
            texts_of_field = [text.removesuffix(" [doi]") for text in dois[:1]]
        elif field == "keywords":  # of PubMed: headings, and those of the authors
            words = [text for texts in all_of_tags for text in texts]
            if kind is _WEB_OF_SCIENCE:
                words = [word.strip() for text in words for word in text.split(";")]
            texts_of_field = list(dict.fromkeys(filter(None, words)))
        elif field in ("date", "year"):
            texts_of_field = [text.rstrip("/") for text in texts_of_field]
        if texts_of_field:
            record[field] = _list_or_text(field, texts_of_field)
    used = {tag for tags in kind.fields.values() for tag in tags.split()}
    further = {tag: texts for tag, texts in by_tag.items() if texts and tag not in used}
    return record | {tag: _list_or_text(tag, texts) for tag, texts in further.items()}


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
