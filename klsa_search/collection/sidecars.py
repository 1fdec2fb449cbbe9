"""Queries and judgements in the same folder as the documents."""

from __future__ import annotations

from pathlib import Path

from klsa_search.collection import jsonl
from klsa_search.collection.folder import listing, plain_name
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Judgement, Query
from klsa_search.collection.qrels import read_qrels, unique
from klsa_search.collection.query_lines import read_query_lines
from klsa_search.collection.recognise import sniff
from klsa_search.collection.trec import read_topics


def queries(folder: Path, links: bool = False) -> list[Query]:
    """Return the queries of `queries.jsonl`, else of all `topics*` files; empty without any."""
    files = listing(folder, links)
    for file in files:
        if plain_name(file) == "queries.jsonl":
            return jsonl.queries(file)
    return [
        query
        for file in files
        if plain_name(file).startswith("topics")
        for query in read_topics(file)
    ]


def judgements(folder: Path, links: bool = False) -> list[Judgement]:
    """Return the judgements of one split of `qrels/`, else of all `qrels*` files; or none.

    The split is `test.tsv`, as results on BEIR are reported, or the first by name.
    """
    inner = folder / "qrels"
    if inner.is_dir() and (links or not inner.is_symlink()):
        splits = [file for file in listing(inner, links) if plain_name(file).endswith(".tsv")]
        splits.sort(key=lambda file: plain_name(file) != "test.tsv")
        return read_qrels(splits[0]) if splits else []
    files = [file for file in listing(folder, links) if plain_name(file).startswith("qrels")]
    return unique((line for file in files for line in read_qrels(file)), folder)


def read_queries(file: str | Path) -> list[Query]:
    """Return the queries of one file: JSON lines, lines of id, tab and text, or TREC topics.

    The format is detected from the beginning of the file. CollectionError for another format or an
    invalid line. Memory: all queries.

    >>> read_queries("queries.jsonl")
    [Query(id='1', text='leaking coolant')]
    """
    path = Path(file)
    if sniff(path) == "jsonl":
        return jsonl.queries(path)
    first = next((line for _, line in lines(path) if line.strip()), "")
    is_lines = "\t" in first and not first.lstrip().startswith("<")
    return read_query_lines(path) if is_lines else read_topics(path)
