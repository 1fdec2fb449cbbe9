"""Files of queries and of judgements, and those in a folder of documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from klsa_search.collection import json_files, trec
from klsa_search.collection.detection import named_files, sniff
from klsa_search.collection.folder import EVERYTHING, Selection, uncompressed_name
from klsa_search.collection.lines import checked_lines, lines
from klsa_search.collection.model import Judgement, Topic, document_fault
from klsa_search.errors import CollectionError


def read_query_lines(path: Path) -> list[Topic]:
    """Return the queries of a file of lines, in order; blank lines are skipped.

    A line is an id, a tab and the text. CollectionError names file and line if there is no tab, if
    the id is blank or repeated, or if the line is not UTF-8.
    """
    return unique_topics(_cells_of_lines(path))


def _cells_of_lines(path: Path) -> Iterator[tuple[str, str, str]]:
    for where, line in checked_lines(path):
        if line.strip():
            name, tab, text = line.rstrip("\r\n").partition("\t")
            if not tab:
                raise CollectionError(f"{where}: no tab; a line is an id, a tab and a query")
            yield where, name.strip(), text


def _cells_of_json(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in lines(path):
        if not line.isspace():
            where = f"{path}:{number}"
            document = json_files.document_of(line, where)
            if document.id.strip() and (fault := document_fault(document)):
                raise CollectionError(f"{where}: {fault}; correct the line")
            yield where, document.id, document.text


def unique_topics(cells: Iterable[tuple[str, str, str]]) -> list[Topic]:
    """Return queries by their origins, ids and texts; CollectionError for a bad id.

    Always strict: a skipped query would change every measure.
    """
    topics: dict[str, Topic] = {}
    for where, name, text in cells:
        if not name.strip() or name in topics:
            fact = f"{name!r} is used before" if name.strip() else "is blank"
            raise CollectionError(f"{where}: the query id {fact}; correct it")
        topics[name] = Topic(id=name, text=text)
    return list(topics.values())


def read_topics(path: str | Path) -> list[Topic]:
    """Return the TREC topics of a file: id from <num>, text from <title>, else from <desc>.

    CollectionError if there is no topic, or one without a number, or a number occurs twice. Memory:
    the whole file.

    >>> read_topics("topics.txt")
    [Topic(id='301', text='wet roads')]
    """
    topics = unique_topics(trec.topics(Path(path)))
    if not topics:
        raise CollectionError(f"{path}: no <top> ... </top> in it; is it a TREC topics file?")
    return topics


_QUERIES: Final = re.compile(r"queries\.jsonl")
_TOPICS: Final = re.compile("topics.*")
_SPLITS: Final = re.compile(r".*\.tsv")
_QRELS: Final = re.compile("qrels.*")


def queries(folder: Path, selection: Selection = EVERYTHING) -> list[Topic]:
    """Return the queries of `queries.jsonl`, else of all `topics*` files; empty without these."""
    for file in named_files(folder, _QUERIES, selection):
        return unique_topics(_cells_of_json(file))
    topics = named_files(folder, _TOPICS, selection)
    return [query for file in topics for query in read_topics(file)]


def judgements(folder: Path, selection: Selection = EVERYTHING) -> list[Judgement]:
    """Return the judgements of one split of `qrels/`, else of all `qrels*` files.

    The split is `test.tsv`, on which BEIR results are reported, or the first by name.
    """
    inner = folder / "qrels"
    if inner.is_dir() and (selection.follow_links or not inner.is_symlink()):
        splits = named_files(inner, _SPLITS, selection)
        splits.sort(key=lambda file: uncompressed_name(file) != "test.tsv")
        return read_qrels(splits[0]) if splits else []
    files = named_files(folder, _QRELS, selection)
    return deduplicate((line for file in files for line in read_qrels(file)), folder)


def read_queries(file: str | Path) -> list[Topic]:
    """Return the queries of one file: JSON lines, lines of id, tab and text, or TREC topics.

    The format is detected from the beginning of the file. CollectionError for another format or an
    invalid line. Memory: all queries.

    >>> read_queries("queries.jsonl")
    [Topic(id='1', text='leaking coolant')]
    """
    path = Path(file)
    if sniff(path) == "jsonl":
        return unique_topics(_cells_of_json(path))
    first = next((line for _, line in lines(path) if line.strip()), "")
    is_lines = "\t" in first and not first.lstrip().startswith("<")
    return read_query_lines(path) if is_lines else read_topics(path)


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
