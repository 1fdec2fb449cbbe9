"""Queries as lines of an id, a tab and a text: what batch search reads."""

from __future__ import annotations

from pathlib import Path

from klsa_search.collection.intake import text_fault
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Query
from klsa_search.errors import CollectionError


def read_query_lines(path: Path) -> list[Query]:
    """Return the queries of a file, plain or gzip, in its order; blank lines are passed over.

    The text goes from the first tab to the end of the line. CollectionError names file and line of
    one without a tab, with an id that is blank or used before, or that is not UTF-8.
    """
    found: dict[str, Query] = {}
    for number, line in lines(path):
        where = f"{path}:{number}"
        fault = text_fault(line)
        if fault:
            raise CollectionError(f"{where}: the line {fault}; correct it")
        if not line.strip():
            continue
        name, tab, text = line.rstrip("\r\n").partition("\t")
        name = name.strip()
        if not tab:
            raise CollectionError(f"{where}: no tab; a line is an id, a tab and a query")
        if not name or name in found:
            fact = f"{name!r} is used before" if name else "is blank"
            raise CollectionError(f"{where}: the query id {fact}; correct the line")
        found[name] = Query(id=name, text=text)
    return list(found.values())
