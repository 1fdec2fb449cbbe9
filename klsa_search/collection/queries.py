"""Files of queries, and the queries and judgements in a folder of documents."""

from __future__ import annotations

from pathlib import Path

from klsa_search.collection import json_files
from klsa_search.collection.detection import sniff
from klsa_search.collection.folder import (
    EVERYTHING,
    Selection,
    list_files,
    uncompressed_name,
)
from klsa_search.collection.lines import checked_lines, lines
from klsa_search.collection.model import Judgement, Topic
from klsa_search.collection.qrels import deduplicate, read_qrels
from klsa_search.collection.trec import read_topics
from klsa_search.errors import CollectionError


def read_query_lines(path: Path) -> list[Topic]:
    """Return the queries of a file of lines, in order; blank lines are skipped.

    A line is an id, a tab and the text. CollectionError names file and line if there is no tab, if
    the id is blank or repeated, or if the line is not UTF-8.
    """
    topics: dict[str, Topic] = {}
    for where, line in checked_lines(path):
        if not line.strip():
            continue
        name, tab, text = line.rstrip("\r\n").partition("\t")
        name = name.strip()
        if not tab:
            raise CollectionError(f"{where}: no tab; a line is an id, a tab and a query")
        if not name or name in topics:
            fact = f"{name!r} is used before" if name else "is blank"
            raise CollectionError(f"{where}: the query id {fact}; correct the line")
        topics[name] = Topic(id=name, text=text)
    return list(topics.values())


def queries(folder: Path, selection: Selection = EVERYTHING) -> list[Topic]:
    """Return the queries of `queries.jsonl`, else of all `topics*` files; empty without these."""
    files = list_files(folder, selection)
    for file in files:
        if uncompressed_name(file) == "queries.jsonl":
            return json_files.queries(file)
    return [
        query
        for file in files
        if uncompressed_name(file).startswith("topics")
        for query in read_topics(file)
    ]


def judgements(folder: Path, selection: Selection = EVERYTHING) -> list[Judgement]:
    """Return the judgements of one split of `qrels/`, else of all `qrels*` files.

    The split is `test.tsv`, on which BEIR results are reported, or the first by name.
    """
    inner = folder / "qrels"
    if inner.is_dir() and (selection.follow_links or not inner.is_symlink()):
        splits = [
            file
            for file in list_files(inner, selection)
            if uncompressed_name(file).endswith(".tsv")
        ]
        splits.sort(key=lambda file: uncompressed_name(file) != "test.tsv")
        return read_qrels(splits[0]) if splits else []
    files = [
        file
        for file in list_files(folder, selection)
        if uncompressed_name(file).startswith("qrels")
    ]
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
        return json_files.queries(path)
    first = next((line for _, line in lines(path) if line.strip()), "")
    is_lines = "\t" in first and not first.lstrip().startswith("<")
    return read_query_lines(path) if is_lines else read_topics(path)
