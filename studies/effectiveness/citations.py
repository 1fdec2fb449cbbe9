"""Citation tasks: the title of a document → the documents it is linked to by citation.

`.X` of CACM and CISI lists, line by line, another document and the kind of link: cacm has 4 for
common references, 5 where one cites the other and 6 for being cited together; cisi has how often
two were cited together.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from klsa_search.collection import open_collection
from klsa_search.collection.model import Judgement, Topic
from studies.effectiveness.measuring import Task

FILES = {"cacm": "cacm/cacm.all", "cisi": "cisi/CISI.ALL"}
FEWEST = 5
QUERIES = 150

_LINK = re.compile(r"^(\d+)\s+(\d+)\s+(\d+)\s*$")


def citation_task(name: str, data: Path) -> Task:
    """Titles of 150 documents with at least 5 links; the document itself is not ranked."""
    documents = list(open_collection(name, data=[data]).documents())
    known = {document.id for document in documents}
    links = {
        document: sorted(linked & known - {document})
        for document, linked in links_of(data / FILES[name]).items()
    }
    asked = [d for d in documents if len(links[d.id]) >= FEWEST and len(d.title.split()) >= 4]
    places = np.sort(np.random.default_rng(0).choice(len(asked), QUERIES, replace=False))
    chosen = [asked[place] for place in places.tolist()]
    return Task(
        f"{name}-citations",
        documents,
        [Topic(id=document.id, text=document.title) for document in chosen],
        [
            Judgement(query_id=document.id, document_id=other, grade=1, gain=1)
            for document in chosen
            for other in links[document.id]
        ],
        corpus=name,
        left_out={document.id: document.id for document in chosen},
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
