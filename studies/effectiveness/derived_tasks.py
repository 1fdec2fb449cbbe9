"""Tasks made of documents and of other tasks: known items, long queries, citations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from klsa_search.collection import Document, open_collection
from klsa_search.collection.model import Judgement, Topic
from studies.effectiveness.measuring import Task

QUERIES = 250
_SENTENCE = re.compile(r"(?<=[.?!])\s+")


def title_to_text(name: str, documents: Sequence[Document]) -> Task:
    """Titles of at least 3 words → their texts of at least 25; no document keeps its title."""
    asked = {
        d.id: d.title for d in documents if len(d.title.split()) >= 3 and len(d.text.split()) >= 25
    }
    return _task(name, [replace(d, title="") for d in documents], asked)


def sentence_to_rest(name: str, documents: Sequence[Document]) -> Task:
    """The middle one of at least four sentences of six words → its document without it."""
    asked = {}
    for document in documents:
        sentences = [s for s in _SENTENCE.split(document.text) if len(s.split()) >= 6]
        if len(sentences) >= 4:
            asked[document.id] = sentences[len(sentences) // 2]
    chosen = _chosen(asked)
    rest = [
        replace(d, text=d.text.replace(chosen[d.id], "", 1)) if d.id in chosen else d
        for d in documents
    ]
    return _task(name, rest, chosen)


def summary_to_docstring() -> Task:
    """First paragraphs of docstrings → the rest, which has at least 15 words."""
    documents, asked, seen = [], {}, set()
    for document in open_collection("python-docs").documents():
        summary, _, rest = document.text.partition("\n\n")
        summary = " ".join(summary.split())
        if len(rest.split()) >= 15 and len(summary.split()) >= 4 and summary not in seen:
            seen.add(summary)
            asked[document.id] = summary
            documents.append(Document(id=document.id, text=rest))
    return _task("python-docs", documents, asked)


def _task(name: str, documents: Sequence[Document], asked: dict[str, str]) -> Task:
    chosen = _chosen(asked)
    return Task(
        name,
        documents,
        [Topic(id=identity, text=text) for identity, text in chosen.items()],
        [Judgement(query_id=i, document_id=i, grade=1, gain=1) for i in chosen],
    )


def _chosen(asked: dict[str, str], most: int = QUERIES) -> dict[str, str]:
    """At most so many of them, at random, in document order."""
    names = list(asked)
    count = min(most, len(names))
    places = np.sort(np.random.default_rng(0).choice(len(names), count, replace=False))
    return {names[place]: asked[names[place]] for place in places.tolist()}


FEWEST = 3
"""Relevant documents a query needs for one of them to take its place."""


def by_document(task: Task) -> Task:
    """Title and text of the first relevant document in place of each query.

    A document that asks is in no collection then, for no query: it would be its own best answer,
    and the first that an expansion starts from.
    """
    known = {document.id for document in task.documents}
    relevant: dict[str, set[str]] = {}
    for judgement in task.judgements:
        if judgement.grade > 0 and judgement.document_id in known:
            relevant.setdefault(judgement.query_id, set()).add(judgement.document_id)
    asking = {
        query: next(document for document in task.documents if document.id in ids)
        for query, ids in relevant.items()
        if len(ids) >= FEWEST
    }
    out = {document.id for document in asking.values()}
    return replace(
        task,
        name=f"{task.name}-by-document",
        corpus=f"{task.corpus}-by-document",
        documents=[document for document in task.documents if document.id not in out],
        queries=[Topic(id=query, text=f"{d.title}\n{d.text}") for query, d in asking.items()],
        judgements=[
            judgement
            for judgement in task.judgements
            if judgement.query_id in asking and judgement.document_id not in out
        ],
    )


FILES = {"cacm": "cacm/cacm.all", "cisi": "cisi/CISI.ALL"}
MOST_CITATIONS, FEWEST_CITATIONS = 150, 5

_LINK = re.compile(r"^(\d+)\s+(\d+)\s+(\d+)\s*$")


def citation_task(name: str, data: Path) -> Task:
    """Titles of 150 documents with at least 5 links; the document itself is not ranked."""
    documents = list(open_collection(name, data=[data]).documents())
    known = {document.id for document in documents}
    links = {
        document: sorted(linked & known - {document})
        for document, linked in links_of(data / FILES[name]).items()
    }
    linked = (document for document in documents if len(links[document.id]) >= FEWEST_CITATIONS)
    asked = {document.id: document.title for document in linked if len(document.title.split()) >= 4}
    chosen = _chosen(asked, MOST_CITATIONS)
    return Task(
        f"{name}-citations",
        documents,
        [Topic(id=id_, text=title) for id_, title in chosen.items()],
        [
            Judgement(query_id=id_, document_id=other, grade=1, gain=1)
            for id_ in chosen
            for other in links[id_]
        ],
        corpus=name,
        left_out={id_: id_ for id_ in chosen},
    )


def links_of(path: Path) -> dict[str, set[str]]:
    links: dict[str, set[str]] = {}
    current: set[str] = set()
    inside = False
    for line in path.read_text("latin-1").splitlines():
        if line.startswith(".I"):
            current = links.setdefault(line.split()[1], set())
        if line.startswith("."):
            inside = line.startswith(".X")
        elif inside and (found := _LINK.match(line)):
            current.add(found[1])
    return links
