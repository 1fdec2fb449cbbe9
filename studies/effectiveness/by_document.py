"""Long queries: a relevant document, taken out of the collection, asks for the others."""

from __future__ import annotations

from dataclasses import replace

from klsa_search.collection.model import Topic
from studies.effectiveness.measuring import Task

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
