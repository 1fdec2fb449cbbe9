"""Relevance judgements of an index, rows of the catalogue: a grade for each query and document.

    Judgements(path).put("hot wings", "report-7", 1)
    Judgements(path).queries() -> [JudgedQuery]

They belong to the index, not to a generation: builds, writes and rollbacks do not change them. A
query is identified by its text, and keeps the number that files of judgements use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from klsa_search.collection.model import Judgement, checked_id, text_fault
from klsa_search.core.arguments import checked_argument
from klsa_search.errors import QueryError
from klsa_search.storage.catalog_entry import change_rows, read_entry

MAX_GRADE: Final = 100
MAX_QUERY_CHARACTERS: Final = 10_000
"""Length limit of a judged query."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """One query and the grades of its documents, by ID; above 0 is relevant.

    number  its name in files of judgements, from 1 in the order of their first judgements
    """

    number: int
    text: str
    grades: Mapping[str, int]

    def judgements(self) -> list[Judgement]:
        """Return its judgements in the form of collections; the query is named by its number."""
        return [
            Judgement(
                query_id=str(self.number), document_id=document, grade=grade, gain=max(grade, 0)
            )
            for document, grade in self.grades.items()
        ]

    def as_line(self) -> str:
        """Return number, tab and text: a line of a file of queries."""
        return f"{self.number}\t{self.text}\n"


class Judgements:
    """The judgements of the index at a path. Safe to share between threads.

    Each change is durable on return. Raise IndexNotFound, IndexDamaged, StoreError; IndexBusy if
    another change takes more than ten seconds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, query: str, document: str, grade: int) -> None:
        """Set the grade of a document for a query, replacing any earlier one.

        Raise QueryError for a blank query or a grade beyond -100 to 100; BadDocument for an
        invalid ID.
        """
        text, document = plain(query), checked_id(document)
        if not isinstance(grade, int) or isinstance(grade, bool) or abs(grade) > MAX_GRADE:
            raise QueryError(
                f"grade = {grade!r} is not a whole number from -{MAX_GRADE} to "
                f"{MAX_GRADE}; above 0 means relevant",
                field="grade",
            )
        with change_rows(self._path) as entry:
            numbers = {text: number for number, text in entry.rows("queries")}
            if text not in numbers:  # none is ever deleted, so the next number is new
                numbers[text] = len(numbers) + 1
                entry.insert("queries", [(numbers[text], text)])
            entry.insert("judgements", [(numbers[text], document, grade)])

    def remove(self, query: str, document: str | None = None) -> int:
        """Remove the judgement of a document, or all, of a query; return how many were removed."""
        text = plain(query)
        if document is not None:
            checked_id(document)
        with change_rows(self._path) as entry:
            number = {text: number for number, text in entry.rows("queries")}.get(text)
            removed = [
                row[:2]
                for row in entry.rows("judgements")
                if row[0] == number and document in (None, row[1])
            ]
            for key in removed:
                entry.delete("judgements", "query = ? and document = ?", key)
        return len(removed)

    def queries(self, query: str | None = None) -> list[JudgedQuery]:
        """Return all judged queries, or this one, in the order of their numbers; grades by ID."""
        text = None if query is None else plain(query)
        with read_entry(self._path) as entry:
            texts: dict[int, str] = dict(entry.rows("queries"))
            judgements = sorted(entry.rows("judgements"))
        grades: dict[int, dict[str, int]] = {}
        for number, document, grade in judgements:
            if text in (None, texts[number]):
                grades.setdefault(number, {})[document] = grade
        return [JudgedQuery(number, texts[number], of_it) for number, of_it in grades.items()]


def plain(query: str) -> str:
    """Return the text that identifies a query: white space is one space, and stripped at the ends.

    Raise ArgumentError for another type; QueryError for a blank text, and one of more than 10,000
    characters.
    """
    text = " ".join(checked_argument("query", query, str).split())
    if fault := text_fault(text):
        raise QueryError(f"query {fault}; judge another query", field="query")
    if not 1 <= len(text) <= MAX_QUERY_CHARACTERS:
        raise QueryError(
            f"query has {len(text):,} characters; give 1 to {MAX_QUERY_CHARACTERS:,}", field="query"
        )
    return text
