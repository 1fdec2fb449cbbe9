"""How much of what is relevant fits into a number of tokens, by passages and by fixed chunks.

`max_tokens` returns the best passages within a budget. The usual alternative cuts texts at every
300 words and returns the best chunks by BM25. Relevant are spans of the texts: the paragraph that a
question was written from, in its Wikipedia article (jaquad-ja, drcd-zh); the words that answer a
question to a manual of Python (`manual_questions`); or a whole function (cosqa). A span is found if
at least half of it is in the texts that are returned. Tokens are estimated, for all systems alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from klsa_search import Index
from klsa_search.collection import Document
from klsa_search.search.budget import CANDIDATES, estimated_tokens
from klsa_search.storage.passages import PassageId
from studies.effectiveness.kinds import task_of
from studies.effectiveness.manual_questions import LIBRARY, REFERENCE
from studies.effectiveness.manuals import library, reference
from studies.effectiveness.measuring import Bench, Task, heading, row
from studies.effectiveness.passages import QUERIES as MOST
from studies.effectiveness.passages import articles

TOKENS: Final = (1000, 2000, 4000)
CHUNK: Final = 300
"""Words of a chunk; two characters of Chinese or Japanese count as one."""

_WORD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\W\u3040-\u30ff\u3400-\u9fff]+"  # kana and Han
)

Ranker = Literal["bm25", "klsa"]


class Question(NamedTuple):
    """A query, and the spans that are relevant, of which one may be found or several.

    answers  groups of spans with the same words, of which any will do
    """

    text: str
    answers: Sequence[Sequence[PassageId]]


class Source(NamedTuple):
    """Documents, and questions to them."""

    documents: Sequence[Document]
    questions: Sequence[Question]


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the recall of each question. `names`: only these sources."""
    found: dict[str, Any] = {}
    heading("", "questions", "texts", *(f"{tokens:,} tokens" for tokens in TOKENS))
    for name in names or SOURCES:
        source = SOURCES[name](data)
        chunks = [chunk for document in source.documents for chunk in fixed_chunks(document)]
        indexes = {
            "chunks": bench.index(Task(f"{name}-chunks", chunks, [], []), {"passages": "off"}),
            "passages": bench.index(Task(name, source.documents, [], []), {}),
        }
        find: Mapping[str, _Find] = {"chunks": _chunks_within, "passages": _passages_within}
        rankers: tuple[Ranker, ...] = ("bm25", "klsa")
        found[name] = {}
        for kind, index in indexes.items():
            for ranker in rankers:
                recalls = [
                    [recall(q, find[kind](index, q.text, ranker, tokens)) for q in source.questions]
                    for tokens in TOKENS
                ]
                found[name][f"{kind}, {ranker}"] = recalls
                cells = (f"{np.mean(values):.3f}" for values in recalls)
                row(name, len(source.questions), f"{kind}, {ranker}", *cells)
    return found


def fixed_chunks(document: Document) -> list[Document]:
    """Return a document cut at every `CHUNK` words, wherever that is."""
    text = document.text
    starts = [match.start() for match in _WORD.finditer(text)][::CHUNK] or [0]
    spans = zip([0, *starts[1:]], [*starts[1:], len(text)], strict=True)
    return [
        Document(
            id=str(PassageId(document.id, begin, end)), title=document.title, text=text[begin:end]
        )
        for begin, end in spans
    ]


def recall(question: Question, evidence: Sequence[PassageId]) -> float:
    """Return the share of the answers that are found: one of their spans is, at least half."""
    return float(
        np.mean([any(_is_found(s, evidence) for s in spans) for spans in question.answers])
    )


def _is_found(span: PassageId, evidence: Sequence[PassageId]) -> bool:
    covered = sum(
        max(0, min(span.end, each.end) - max(span.begin, each.begin))
        for each in evidence
        if each.document_id == span.document_id
    )
    return 2 * covered >= span.end - span.begin


_Find = Callable[[Index, str, Ranker, int], list[PassageId]]


def _chunks_within(index: Index, text: str, ranker: Ranker, tokens: int) -> list[PassageId]:
    """Return the best chunks that fit into a number of tokens."""
    left, taken = tokens, []
    for hit in index.search(text, CANDIDATES, ranker=ranker, operators=False):
        (doc_id,) = index.doc_ids([hit.id])
        (chunk,) = index.documents([doc_id])
        size = estimated_tokens(chunk.text)
        if size <= left:
            taken.append(PassageId.of(hit.id))
            left -= size
    return taken


def _passages_within(index: Index, text: str, ranker: Ranker, tokens: int) -> list[PassageId]:
    """Return the passages that a search returns within a number of tokens."""
    results = index.search(
        text, CANDIDATES, group="passage", max_tokens=tokens, ranker=ranker, operators=False
    )
    return [PassageId(hit.document_id or "", *(hit.span or (0, 0))) for hit in results]


def _of_articles(name: str, data: Path) -> Source:
    task = task_of(name, data)
    documents, spans = articles(task.documents)
    answers: dict[str, list[list[PassageId]]] = {}
    for each in task.judgements:
        if each.grade > 0:
            answers.setdefault(each.query_id, []).append([PassageId(*spans[each.document_id])])
    asked = [query for query in task.queries if query.id in answers][:MOST]
    return Source(documents, [Question(query.text, answers[query.id]) for query in asked])


def _of_documents(name: str, data: Path) -> Source:
    task = task_of(name, data)
    lengths = {each.id: len(each.text) for each in task.documents}
    answers: dict[str, list[list[PassageId]]] = {}
    for each in task.judgements:
        if each.grade > 0:
            span = PassageId(each.document_id, 0, lengths[each.document_id])
            answers.setdefault(each.query_id, []).append([span])
    asked = [query for query in task.queries if query.id in answers][:MOST]
    return Source(task.documents, [Question(query.text, answers[query.id]) for query in asked])


def _of_manual(documents: Sequence[Document], asked: Sequence[tuple[str, str]]) -> Source:
    """Questions whose words are not in the manual of another version of Python are left out."""
    questions = [Question(text, [spans_of(words, documents)]) for text, words in asked]
    return Source(documents, [each for each in questions if each.answers[0]])


def spans_of(words: str, documents: Sequence[Document]) -> list[PassageId]:
    """Return where words are in the texts, which may break lines anywhere between them."""
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
    return [
        PassageId(each.id, *match.span())
        for each in documents
        for match in pattern.finditer(each.text)
    ]


SOURCES: Final[Mapping[str, Callable[[Path], Source]]] = {
    "python-reference": lambda _: _of_manual(reference(), REFERENCE),
    "python-library": lambda _: _of_manual(library(), LIBRARY),
    "jaquad-ja": lambda data: _of_articles("jaquad-ja", data),
    "drcd-zh": lambda data: _of_articles("drcd-zh", data),
    "cosqa": lambda data: _of_documents("cosqa", data),
}
