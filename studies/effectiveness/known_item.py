"""Known-item tasks made from documents: a part is the query, the rest has to be found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

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


def _chosen(asked: dict[str, str]) -> dict[str, str]:
    """At most `QUERIES` of them, at random, in document order."""
    names = list(asked)
    count = min(QUERIES, len(names))
    places = np.sort(np.random.default_rng(0).choice(len(names), count, replace=False))
    return {names[place]: asked[names[place]] for place in places.tolist()}
