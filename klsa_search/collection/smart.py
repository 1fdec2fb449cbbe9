"""SMART: records that begin with `.I number`, fields that begin with `.T`, `.W` ..."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, Self

from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import UTF8_BOM, lines
from klsa_search.collection.model import Document, Judgement, Topic
from klsa_search.collection.queries import deduplicate, parse_grade, unique_topics
from klsa_search.errors import CollectionError

_UTF8_MARK: Final = UTF8_BOM.decode("latin-1")
_CRAN_GRADES: Final = 5  # of which the last is not relevant
MARK = re.compile(r"\.(?:(I)(?:[ \t]+(\S+))?|([A-Z]))\s*$")
METADATA = {"A": "author", "B": "source", "C": "categories", "N": "note"}
# .X is a matrix of citations, not text.


@dataclass(frozen=True, slots=True, kw_only=True)
class SmartRules:
    """Deviations of one collection from the format.

    is_cran       `.W` extends to the next `.I`, as marks inside it are typing errors, and begins
                  with the title, which is removed there; judgements number queries 1, 2, 3 in file
                  order, and grade 1 is the best: gain = 5 - grade, and 0 if negative
    all_relevant  every line of the judgements is relevant: grade and gain are 1
    """

    is_cran: bool = False
    all_relevant: bool = False

    @classmethod
    def of(cls, documents: Path, name: str | None = None) -> Self:
        """Return the rules for a SMART file, by its name and the name of the collection."""
        is_cran = documents.name.lower().startswith("cran")
        return cls(is_cran=is_cran, all_relevant=is_cran and name == "cran-1837")


@dataclass(slots=True)
class _Record:
    id: str
    origin: str
    fault: str | None = None
    fields: dict[str, list[str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return "\n".join(self.fields.get(name, [])).strip()


def documents(path: Path, intake: Intake, rules: SmartRules) -> Iterator[Document]:
    """Stream the documents of one Latin-1 file: title .T, text .W and keywords .K.

    Author, source, categories and note (.A .B .C .N) become metadata.
    """
    for record in _records(path, rules):
        if record.fault:
            intake.refuse(f"{record.origin}: {record.fault}")
            continue
        if rules.is_cran:
            _drop_title(record)
        yield Document(
            id=record.id,
            title=" ".join(record.text("T").split()),
            text="\n".join(filter(None, (record.text("W"), record.text("K")))),
            metadata={
                name: record.text(mark) for mark, name in METADATA.items() if record.text(mark)
            },
            origin=record.origin,
        )


def queries(path: Path, rules: SmartRules) -> list[Topic]:
    """Return the queries of one file, with text .T and .W; CollectionError for a bad record.

    The later queries of CISI have both. Author, source and note (.A .B .N) are ignored.
    """
    return unique_topics(_cells(path, rules))


def _cells(path: Path, rules: SmartRules) -> Iterator[tuple[str, str, str]]:
    for order, record in enumerate(_records(path, rules), start=1):
        if record.fault:
            raise CollectionError(f"{record.origin}: {record.fault}; correct the file")
        text = " ".join(f"{record.text('T')} {record.text('W')}".split())
        yield record.origin, str(order) if rules.is_cran else record.id, text


def judgements(path: Path, rules: SmartRules) -> list[Judgement]:
    """Return the judgements of one file; CollectionError for a bad line.

    Three layouts are recognised, line by line: `query 0 document grade` (med), where no document
    has the number 0; `query document grade` (cran); `query document` and columns to ignore (cisi,
    cacm), where every line is relevant.
    """
    judgements_ = []
    for number, line in _lines(path):
        where = f"{path}:{number}"
        cells = line.split()
        if not cells:
            continue
        if len(cells) < 2:
            raise CollectionError(f"{where}: one column; a query and a document are needed")
        query, document, grade = cells[0], cells[1], 1
        if len(cells) == 4 and cells[1] == "0":
            document, grade = cells[2], parse_grade(cells[3], where)
        elif len(cells) == 3:
            grade = parse_grade(cells[2], where)
        gain = max(grade, 0)
        if rules.all_relevant:
            grade = gain = 1
        elif rules.is_cran:
            gain = max(_CRAN_GRADES - grade, 0) if grade > 0 else 0
        judgements_.append(
            Judgement(query_id=_plain(query), document_id=_plain(document), grade=grade, gain=gain)
        )
    return deduplicate(judgements_, path)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line) in Latin-1, without byte-order marks of UTF-8."""
    for number, line in lines(path, "latin-1"):
        while line.startswith(_UTF8_MARK):  # also of a file appended to another
            line = line.removeprefix(_UTF8_MARK)
        yield number, line


def _records(path: Path, rules: SmartRules) -> Iterator[_Record]:
    record: _Record | None = None
    current: list[str] | None = None
    in_words = False
    for number, line in _lines(path):
        text = line.rstrip()
        mark = MARK.match(text)
        if mark and mark[1]:
            if record:
                yield record
            record = _Record(id=_plain(mark[2] or ""), origin=f"{path}:{number}")
            current, in_words = None, False
            if not record.id:
                record.fault = "`.I` without a number"
        elif record is None:
            if text:
                record = _Record(id="", origin=f"{path}:{number}", fault="text before any `.I`")
        elif mark:
            if not (in_words and rules.is_cran):
                current = record.fields.setdefault(mark[3], [])
                in_words = mark[3] == "W"
        elif current is not None:
            current.append(text)
        elif text:
            record.fault = record.fault or "text before any field"
    if record:
        yield record


def _drop_title(record: _Record) -> None:
    """Remove the title from `.W`; an approximate match suffices, because cran has misprints."""
    title = [line for line in record.fields.get("T", []) if line]
    words = record.fields.get("W", [])
    repeated = words[: len(title)]
    if title and SequenceMatcher(None, "\n".join(title), "\n".join(repeated)).ratio() > 0.9:
        del words[: len(title)]


def _plain(number: str) -> str:
    """Return a number without leading zeros: `0756` and `756` are the same document."""
    return number.lstrip("0") or "0" if number.isdecimal() and number.isascii() else number
