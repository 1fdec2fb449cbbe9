"""Bibliographies: RIS, MEDLINE (.nbib) and EndNote (.enw), whose lines have tags, and BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import translate_read_errors
from klsa_search.collection.model import Document, TruncatedFile

REFERENCES_START: Final = re.compile(
    r"\s*(?:TY {2}- ?\S|PMID {0,2}- ?\d|%0 \S)"
    r"|(?:\s|%.*)*@(?:(?i:string|preamble|comment)\s*\{|[A-Za-z]+\s*\{\s*[^\s,{}()=]+\s*,)"
)
"""Match what only a bibliography begins with; code and prose may begin with `@name (`."""
BIBTEX_START: Final = re.compile(r"(?:\s|%.*)*@[A-Za-z]+\s*[{(]")
"""Match the beginning of BibTeX in a bibliography."""

_TAG: Final = re.compile(r"(?:([A-Z][A-Z0-9]{1,3}) {0,2}-|%([0-9A-Z@]))(?:[ \t](.*)|\Z)")
_FIRST: Final = frozenset(["TY", "PMID", "0"])
"""Tags that begin a record."""
_NAMES: Final[Mapping[str, str]] = {
    name: field
    for field, names in {
        "type": "TY PT 0", "id": "ID PMID", "title": "TI T1 T", "text": "AB N2 X",
        "author": "AU A1 FAU A", "year": "PY D", "date": "DA Y1 DP 8", "keywords": "KW MH OT K",
        "journal": "JO JF T2 JT J", "doi": "DO LID R", "url": "UR U", "volume": "VL VI V",
        "issue": "IS IP N", "pages": "SP PG P", "publisher": "PB I", "language": "LA G",
        "issn": "SN", "notes": "N1 Z",
    }.items()
    for name in names.split()
}  # fmt: skip
"""Fields by the tags of all three formats; others keep their tag."""

Records = Iterator[tuple[str, dict[str, Any]]]


def documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one bibliography: a reference each, with its abstract as text.

    The ID is that of the reference, or its number in a file in which one has none. Authors and
    keywords are lists. Encodings are detected as in text files. Memory: the file.
    """
    lines = list(decoded_lines(path, intake.options.encoding, partial(intake.note, path)))
    text = "".join(line for _, line in lines)
    with translate_read_errors(path):
        read = _bibtex if BIBTEX_START.match(text.removeprefix("\ufeff")) else _tagged
        records = [(f"{path}:{number}", record) for number, record in read(path, text)]
    has_ids = all("id" in record for _, record in records)
    for _, record in () if has_ids else records:
        if "id" in record:
            record["reference"] = record.pop("id")
    yield from intake.documents(path, records, needs_text=True)


def _tagged(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of RIS, MEDLINE or EndNote with the numbers of their first lines."""
    record: dict[str, Any] = {}
    begin, last = 1, ""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if match := _TAG.match(line):
            tag, value = match[1] or match[2], (match[3] or "").strip()
            if tag in _FIRST and record:
                yield begin, _shaped(record)
                record = {}
            begin = begin if record else number
            last = "" if tag == "ER" else _NAMES.get(tag, tag)
            if last and value:
                record.setdefault(last, []).append(value)
        elif line.strip() and last in record:
            record[last][-1] += f" {line.strip()}"
        elif line.strip():
            raise TruncatedFile(
                f"{path}:{number}: no tag, as in `TI  - Pumps`, before {line.strip()[:40]!r}; "
                "correct it, or export it again"
            )
    if record:
        yield begin, _shaped(record)


def _shaped(record: dict[str, list[str]]) -> dict[str, Any]:
    """Return a record whose fields of one value are texts, but for those that may have several."""
    lists = ("author", "keywords")
    record = {name: [value.rstrip("/") for value in values] for name, values in record.items()}
    return {
        name: values
        if name in lists
        else "\n".join(values)
        if name == "text"
        else values[0]
        if len(values) == 1 or name in ("id", "title")
        else values
        for name, values in record.items()
    }


_ENTRY: Final = re.compile(r"@\s*([A-Za-z]+)\s*[{(]\s*")
_FIELD: Final = re.compile(r"\s*,?\s*([^\s=,{}()\"]+)\s*=\s*")
_KEY: Final = re.compile(r"([^,\s{}]+)\s*,?")
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
}  # fmt: skip
_ACCENT: Final = re.compile(
    r"\\(?:([`'^~\"=.])\s*|([uvHckrd])(?![A-Za-z])\s*)\{?\s*(\\[ij](?![A-Za-z])|[^\W\d_])\s*\}?"
)
_LETTER: Final = re.compile(
    rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])\s?"
)
_COMMAND: Final = re.compile(r"\\(?:[A-Za-z]+\*?\s*(?=\{)|(?=[A-Za-z]))")


def _bibtex(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of BibTeX with the numbers of their first lines."""
    strings: dict[str, str] = {}
    at = 0
    while entry := _ENTRY.search(text, at):
        number = text.count("\n", 0, entry.start()) + 1
        kind, at = entry[1].lower(), entry.end()
        if kind in _NO_ENTRIES:
            continue
        fields: dict[str, str] = {}
        if kind != "string":
            key = _KEY.match(text, at)
            fields = {"id": key[1]} if key else {}
            at = key.end() if key else at
        while field := _FIELD.match(text, at):
            value, at = _value(text, field.end(), strings)
            if at > len(text):
                raise TruncatedFile(
                    f"{path}:{number}: the field {field[1]!r} of {fields.get('id', kind)!r} has no "
                    "end; close its brace or quote"
                )
            fields[field[1].lower()] = value
        if kind == "string":
            strings |= fields
        else:
            yield number, {"type": kind, **_entry(fields)}


def _entry(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an entry as text, and names and keywords as lists."""
    record: dict[str, Any] = {}
    for name, value in fields.items():
        name = _BIBTEX_NAMES.get(name, name)
        if name in ("author", "editor"):
            record[name] = [_plain(person) for person in re.split(r"\s+and\s+", value)]
        elif name == "keywords":
            record[name] = [_plain(word) for word in re.split(r"[,;]", value) if word.strip()]
        else:
            record[name] = value if name in ("id", "url", "doi", "file") else _plain(value)
    return record


def _value(text: str, at: int, strings: Mapping[str, str]) -> tuple[str, int]:
    """Return the value of a field that begins at a character, and where it ends.

    The end is beyond the text if the value has none.
    """
    parts: list[str] = []
    while at < len(text):
        if text[at] in '{"':
            end = _end_of(text, at)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif word := re.compile(r"[^\s,{}#()]+").match(text, at):
            parts.append(strings.get(word[0].lower(), word[0]))
            at = word.end()
        following = re.compile(r"\s*#\s*").match(text, at)
        if following is None:
            break
        at = following.end()
    return "".join(parts), at


def _end_of(text: str, at: int) -> int:
    """Return where the brace or quote at a character is closed, or the length of the text."""
    depth = 0
    for match in re.compile(r'\\.|[{}"]', re.DOTALL).finditer(text, at + 1):
        sign = match[0]
        if depth == 0 and sign == {"{": "}", '"': '"'}[text[at]]:
            return match.start()
        depth += (sign == "{") - (sign == "}")
    return len(text)


def _plain(value: str) -> str:
    r"""Return a value of TeX as text.

    >>> _plain(r"{\"U}ber {P}umpen \& caf{\'e}s -- {\o}")
    'Über Pumpen & cafés – ø'
    """
    from unicodedata import normalize

    def accented(match: re.Match[str]) -> str:
        letter = match[3].removeprefix("\\")
        return normalize("NFC", letter + _ACCENTS[match[1] or match[2]])

    text = _LETTER.sub(lambda match: _LETTERS[match[1]], _ACCENT.sub(accented, value))
    text = re.sub(r"\\([&%$#_{}])", lambda match: match[1] if match[1] not in "{}" else "", text)
    text = _COMMAND.sub("", text.replace("---", "—").replace("--", "–").replace("~", " "))
    return " ".join(re.sub(r"[{}]", "", text).split())
