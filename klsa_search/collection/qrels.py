"""Files of relevance judgements in the formats of TREC and BEIR."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from klsa_search.collection.lines import checked_lines
from klsa_search.collection.model import Judgement
from klsa_search.errors import CollectionError

_GRADE: Final = re.compile(r"[+-]?[0-9]{1,9}(\.0*)?")


def read_qrels(path: str | Path) -> list[Judgement]:
    """Return the judgements of a file, in order; CollectionError names an invalid line.

    TREC: `query 0 document grade`, separated by white space. BEIR: `query document grade`,
    separated by tabs, under a header. The gain is max(grade, 0). Invalid lines are never
    skipped, because that would change every measure. Memory: one object per judgement.

    >>> read_qrels("qrels.txt")
    [Judgement(query_id='1', document_id='leak', grade=2, gain=2)]
    """
    judgements: list[Judgement] = []
    for where, line in checked_lines(Path(path)):
        tabbed = line.rstrip("\r\n").split("\t")
        # Three columns separated by tabs are BEIR's, whose ids may contain spaces.
        cells = tabbed if len(tabbed) == 3 else line.split()
        if not cells or (not judgements and cells[0] in ("query-id", "query_id")):
            continue
        if len(cells) not in (3, 4):
            raise CollectionError(f"{where}: {len(cells)} columns; judgements have 4, BEIR's 3")
        grade = parse_grade(cells[-1], where)
        judgements.append(
            Judgement(query_id=cells[0], document_id=cells[-2], grade=grade, gain=max(grade, 0))
        )
    return deduplicate(judgements, path)


def qrels_text(judgements: Iterable[Judgement]) -> tuple[str, list[Judgement]]:
    """Return judgements as lines of `query 0 document grade`, and those that the format excludes.

    These have an id with white space.
    """
    lines, left_out = [], []
    for judgement in judgements:
        if _is_column(judgement.query_id) and _is_column(judgement.document_id):
            lines.append(f"{judgement.query_id} 0 {judgement.document_id} {judgement.grade}\n")
        else:
            left_out.append(judgement)
    return "".join(lines), left_out


def _is_column(id_: str) -> bool:
    return id_.split() == [id_]


def checked_column(id_: str, file: str) -> str:
    """Return an id without white space; CollectionError for any other."""
    if not _is_column(id_):
        raise CollectionError(
            f"the id {id_!r} cannot be written to `{file}`, whose columns are "
            "separated by white space; rename it in the collection"
        )
    return id_


def parse_grade(digits: str, where: str) -> int:
    """Return a grade, such as 2 or 2.0, as an integer; CollectionError if it is not whole."""
    if not _GRADE.fullmatch(digits):
        raise CollectionError(
            f"{where}: the grade {digits!r} is not a whole number of at most 9 digits, and "
            "measures count whole grades only; write whole grades, such as 1 and 2 for 0.5 and 1"
        )
    return int(digits.partition(".")[0])


def deduplicate(judgements: Iterable[Judgement], path: str | Path) -> list[Judgement]:
    """Return judgements without repetitions; CollectionError if a pair has two grades."""
    by_pair: dict[tuple[str, str], Judgement] = {}
    for judgement in judgements:
        pair = (judgement.query_id, judgement.document_id)
        if by_pair.setdefault(pair, judgement) != judgement:
            raise CollectionError(
                f"{path}: query {pair[0]} and document {pair[1]} are judged twice, "
                "with different grades; keep one"
            )
    return list(by_pair.values())
