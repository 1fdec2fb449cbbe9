"""The world of an index that is written to: a writer with a journal, and what must be there."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search import Document, Index, build, open_index
from klsa_search.analysis import Analyzer
from klsa_search.core.config import Settings
from klsa_search.errors import StoreError
from klsa_search.kernels.bm25 import average_length, length_norms, live_length, quantised_length
from klsa_search.kernels.counts import CountsBuilder
from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import QueryKernel, TermWeighting
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.storage.generations import writing
from klsa_search.storage.maintenance import verify
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter

NAME = "written"
QUERIES = ("w0 w5", "w1 w20 w3", "w29 w2", "late w4")
_PLAIN = {"stop_words": "none", "stemmer": "none"}
_SMALL = {"dimensions": 4, "latent_dimensions": 4}
_IDS, _BUILT, _MOST = 60, 30, 1_000

Documents = dict[str, str]
"""Text of each id, in the order of positions."""

Ranked = dict[str, tuple[list[tuple[str, str]], int]]
"""Of each query, ids with their scores to the last bit, and how many documents hold a term."""


def text(chance: random.Random) -> str:
    """Some words, the low numbers often."""
    words = [f"w{int(30 * chance.random() ** 2)}" for _ in range(chance.randint(0, 25))]
    return " ".join([*words, *["late"] * (chance.random() < 0.2)])


def source(version: str) -> Documents:
    """Documents that a version is built of."""
    chance = random.Random(version)
    return {str(number): text(chance) for number in range(_BUILT)}


def build_version(home: Path, version: str) -> str:
    """Build the index of a version, in place of any other, and name the generation."""
    records = ({"id": id_, "text": text} for id_, text in source(version).items())
    index = build(records, name=NAME, home=home, replace=True, **_PLAIN, **_SMALL)  # type: ignore[arg-type]
    with closing(index):
        return index.generation


@dataclass
class Model:
    """What an index must hold: a dictionary, and those that can be gone back to."""

    documents: Documents
    before: list[Documents] = field(default_factory=list)

    def do(self, kind: str, what: Any) -> None:
        """Do as an index does."""
        if kind == "undo":
            self.documents = self.before.pop()
            return
        if kind == "delete" and not self.documents.keys() & set(what):
            return  # a deletion of documents that are not there is no batch
        self.before.append(dict(self.documents))
        for id_ in what:
            self.documents.pop(id_, None)
        if kind == "add":
            self.documents.update(what)

    def copy(self) -> Model:
        """One that can be changed on its own."""
        return Model(dict(self.documents), list(self.before))


def write(path: Path, journal: Path, seed: str, stop: Path, undoing: bool) -> int:
    """Write until told to stop, each write told before and behind; returns how many there were."""
    chance = random.Random(seed)
    count = 0
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with closing(open_index(path)) as index:
        while not stop.exists():
            kind, what = chosen(chance, undoing)
            _tell(descriptor, {"kind": kind, "what": what})
            done = do(index, kind, what)
            _tell(descriptor, {"done": index.generation if done else None})
            count += 1
    os.close(descriptor)
    return count


def chosen(chance: random.Random, undoing: bool) -> tuple[str, Any]:
    """Choose what to write."""
    kind = chance.choice(["add", "add", "delete", *["undo"] * undoing])
    ids = [str(number) for number in chance.sample(range(_IDS), chance.randint(1, 6))]
    return kind, {id_: text(chance) for id_ in ids} if kind == "add" else ids


def do(index: Index, kind: str, what: Any) -> bool:
    """Write; False where there was nothing to undo."""
    if kind == "add":
        index.add([{"id": id_, "text": text} for id_, text in what.items()])
    elif kind == "delete":
        index.delete(what)
    else:
        try:
            with alone_writing(index) as writer:
                writer.undo()
        except StoreError as error:
            if error.field != "batches":
                raise
            return False
        index.refresh()
    return True


@contextmanager
def alone_writing(index: Index) -> Iterator[LogWriter]:
    """Write to the log of an index while nobody else does, as it is at present."""
    with writing(index.path.parent):
        index.refresh()
        with LogWriter(index.path) as writer:
            yield writer


def append(writer: LogWriter, kind: str, what: Any) -> None:
    """Write to a log alone."""
    if kind == "add":
        writer.append([Document(id=id_, text=text) for id_, text in what.items()])
    else:
        writer.append((), what)


def _tell(descriptor: int, what: dict[str, Any]) -> None:
    os.write(descriptor, f"{json.dumps(what)}\n".encode())


def told(journal: Path) -> Iterator[tuple[str, Any, str | None]]:
    """Yield what was written, and the generation that has it: `""` if nobody said that it is done.

    What could not be done is left out.
    """
    read = journal.read_text().splitlines() if journal.exists() else []
    lines: Iterator[dict[str, Any]] = map(json.loads, read)
    for line in lines:
        done = next(lines, {"done": ""})["done"]
        if done is not None:
            yield line["kind"], line["what"], done


@dataclass(frozen=True)
class Seen:
    """What an index gives.

    batches  of writes that can be undone, as `look` tells
    ranked   by the ranker bm25
    others   ids among the answers of its default
    average  the mean length it ranks by; None for that of its build
    """

    generation: str
    batches: int
    documents: Documents
    ranked: Ranked
    others: set[str]
    average: float | None = None


def look(path: Path) -> Seen:
    """Verify an index, open it, and ask it everything."""
    verify(path)
    with closing(open_index(path)) as index:
        batches = sum(batch.undone is None for batch in WriteLog(index.path).batches())
        return replace(seen(index), batches=batches)


def seen(index: Index) -> Seen:
    """Ask an open index everything."""
    found: Ranked = {}
    for query in QUERIES:
        positions, scores = index.rank(query, _MOST, ranker="bm25")
        total = index.search(query, 1, ranker="bm25").total
        hits = zip(index.ids(positions), map(float.hex, scores.tolist()), strict=True)
        found[query] = list(hits), total
    others = {hit.id for query in QUERIES for hit in index.search(query, _MOST)}
    documents = {id_: index.document(id_).text for id_ in index.ids()}
    average = index.arrays.average_length
    return Seen(index.generation, 0, documents, found, others, average)


def fresh(documents: Documents, average: float | None = None) -> Ranked:
    """Rank documents that nothing ever happened to, by BM25.

    average  a mean length of the grid, a step from theirs at most; theirs by default
    """
    builder = CountsBuilder()
    for each in documents.values():
        builder.add(each.split())
    counts = builder.finish()
    mean = average_length(counts.lengths)
    if average is None or live_length(average, mean) != average:
        average = quantised_length(mean)
    norms = length_norms(counts.lengths, average, k1=1.2, b=0.75)
    chosen = Settings(**_PLAIN)  # type: ignore[arg-type]
    known = counts.vocabulary.numbers
    common = sorted(known[term] for term in Analyzer(chosen).common() if term in known)
    weighting = TermWeighting(chosen.burstiness, np.array(common, np.int64), chosen.common_weight)
    engine = Bm25Engine(QueryKernel.of(Postings.of(counts.matrix, norms, 1.2), weighting=weighting))
    ids, found = [*documents], {}
    for query in QUERIES:
        terms = [counts.vocabulary.numbers.get(term, -1) for term in query.split()]
        [top] = engine.top([terms], _MOST, totals=True)
        names = [ids[position] for position in top.doc_ids]
        found[query] = list(zip(names, map(float.hex, top.scores.tolist()), strict=True)), top.total
    return found


def wrong(given: Seen, documents: Documents) -> str | None:
    """Say what is wrong with an index that holds these; None if nothing is."""
    if list(given.documents.items()) != list(documents.items()):
        lost = [id_ for id_ in documents if id_ not in given.documents]
        risen = [id_ for id_ in given.documents if id_ not in documents]
        other = [id_ for id_ in documents if given.documents.get(id_) != documents[id_]]
        return f"not what was written: [lost {lost[:5]}, risen {risen[:5]}, changed {other[:5]}]"
    if given.ranked != fresh(documents, given.average):
        return "BM25 is not that of a fresh build"
    if not given.others <= documents.keys():
        return f"the default finds [{sorted(given.others - documents.keys())[:5]}]"
    return None
