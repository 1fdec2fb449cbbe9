"""Three forms of BM25 over fields: one text, weighted counts, and a length of each field.

    one text     f = Σ f_i
    weighted     f = Σ w_i f_i,  K_d by the weighted length: what the engine does
    own lengths  f = Σ w_i f_i / ((1 - b) + b · l_i / mean l_i),  sat = f / (k1 + f)

The second is the simple BM25F of [Robertson, Zaragoza & Taylor 2004], as in Lucene's
CombinedFieldQuery, the third the BM25F of [Zaragoza et al. 2004]. They are computed outside the
engine, with its analyser and plain idf, so that nothing but f and K_d differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection import Document
from klsa_search.core.config import Settings
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import Ranking
from klsa_search.kernels.bm25 import idf_of
from studies.effectiveness import reuters
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Bench, Task, heading, percent, row

DEPTH = 1_000
B = 0.75
FIELDS = ("title", "text")
LANGUAGES = {"jaquad-ja": "japanese", "drcd-zh": "chinese"}
TITLED = ("cran", "cisi", "cacm", "awsdocs", "medquad", *LANGUAGES)
MORE = {"cran": ("author", "source"), "cacm": ("keywords", "author"), "awsdocs": ("guide",)}
"""Further fields of some collections, which are then named with a plus sign."""
TASKS = (*TITLED, "reuters-topics", *(f"{name}+" for name in MORE))
_CHUNK = 50  # queries scored at once

Floats = npt.NDArray[np.float64]


class Form(NamedTuple):
    """One form: weight of the title, others weigh 1."""

    title: float
    own_lengths: bool
    k1: float


FORMS = {
    f"{name}, k1 = {k1}": Form(title, own, k1)
    for k1 in (1.2, 2.0)
    for name, title, own in (
        ("one text", 1, False),
        ("weighted, title × 2", 2, False),
        ("own lengths, title × 2", 2, True),
        ("weighted, title × 3", 3, False),
        ("own lengths, title × 3", 3, True),
    )
}


class World(NamedTuple):
    """A task with the counts of each field.

    counts   of each field: (N, V) sparse
    asked    (Q, V) sparse, of the judged queries
    weights  (V,) idf
    """

    task: Task
    counts: list[sparse.csr_array]
    asked: sparse.csr_array
    weights: Floats
    judge: Judge


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these."""
    unknown = sorted(set(names) - set(TASKS))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)}; the tasks are: {', '.join(TASKS)}")
    found: dict[str, dict[str, list[float]]] = {}
    for name in names or TASKS:
        try:
            world = world_of(name, data)
        except SystemExit as reason:  # Reuters is not there
            print(f"{name} is skipped: {reason}")
            continue
        found[name] = {label: precisions(world, form) for label, form in FORMS.items()}
    heading("", *found, "mean change")
    for label, form in FORMS.items():
        means = [float(np.mean(each[label])) for each in found.values()]
        same = next(name for name, one in FORMS.items() if one == form._replace(own_lengths=False))
        change = np.mean([np.mean(each[label]) / np.mean(each[same]) for each in found.values()])
        shown = percent(float(change) - 1) if form.own_lengths else ""
        row(label, *(f"{mean:.4f}" for mean in means), shown)
    return found


def world_of(name: str, data: Path) -> World:
    """Return a task with its fields; SystemExit, with the reason, if Reuters is not found."""
    if name == "reuters-topics":
        return counted(reuters.tasks()[name]())
    own = name.removesuffix("+")
    task = task_of(own, data)
    if own == name:
        return counted(task, language=LANGUAGES.get(name, "english"))
    keywords = _keywords(data / "cacm" / "cacm.all") if own == "cacm" else {}
    fields = [
        {
            **{name: str(value) for name, value in document.metadata.items()},
            "guide": document.id.split("/")[0].replace("-", " "),
            **_parts(document),
            **keywords.get(document.id, {}),
        }
        for document in task.documents
    ]
    return counted(task, (*FIELDS, *MORE[own]), fields)


def _parts(document: Document) -> dict[str, str]:
    return {"title": document.title, "text": document.text}


def _keywords(path: Path) -> dict[str, dict[str, str]]:
    """Return abstract and keywords of each document of CACM, which its reader joins."""
    found = {}
    records = re.split(r"^\.I (\d+)\n", path.read_text("latin-1"), flags=re.MULTILINE)
    for number, record in zip(records[1::2], records[2::2], strict=True):
        cells = re.split(r"^\.([A-Z])\n", record, flags=re.MULTILINE)
        marks = dict(zip(cells[1::2], cells[2::2], strict=True))
        found[number] = {"text": marks.get("W", ""), "keywords": marks.get("K", "")}
    return found


def counted(
    task: Task,
    names: Sequence[str] = FIELDS,
    fields: Sequence[Mapping[str, str]] | None = None,
    language: str = "english",
) -> World:
    """Count the words of each field of a task; by default of title and text."""
    analyzer, numbers = Analyzer(Settings(language=language)), dict[str, int]()
    fields = fields or [_parts(document) for document in task.documents]
    judge = Judge(task.judgements, measures=("map",))
    judged = frozenset(judge.query_ids)
    queries = [query for query in task.queries if query.id in judged]
    texts = [[document.get(name, "") for document in fields] for name in names]
    texts.append([query.text for query in queries])
    terms = [
        [[numbers.setdefault(term, len(numbers)) for term in analyzer.terms(text)] for text in each]
        for each in texts
    ]
    *counts, asked = (_matrix(each, len(numbers)) for each in terms)
    frequencies = np.bincount(_sum(counts).indices, minlength=len(numbers))
    chosen = Task(task.name, task.documents, queries, task.judgements)
    return World(chosen, counts, asked, idf_of(frequencies, len(fields)), judge)


def _matrix(texts: Sequence[Sequence[int]], width: int) -> sparse.csr_array:
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    columns = np.array([number for text in texts for number in text], np.int64)
    entries = (np.ones(len(columns)), (rows, columns))
    return sparse.csr_array(sparse.coo_array(entries, shape=(len(texts), width)))


def _sum(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    total = matrices[0]
    for matrix in matrices[1:]:
        total = total + matrix
    return sparse.csr_array(total)


def saturations(counts: Sequence[sparse.csr_array], form: Form) -> sparse.csr_array:
    """Return sat(t, d) in one form: (N, V) sparse."""
    weights = [form.title, *(1.0 for _ in counts[1:])]
    lengths = [np.asarray(each.sum(axis=1)).ravel() for each in counts]
    if form.own_lengths:
        weights_ = [
            weight / ((1 - B) + B * length / max(float(length[length > 0].mean()), 1.0))
            if length.any()
            else np.zeros(len(length))
            for weight, length in zip(weights, lengths, strict=True)
        ]
        norms = np.full(len(lengths[0]), form.k1)
    else:
        weights_ = [
            np.full(len(length), float(weight))
            for weight, length in zip(weights, lengths, strict=True)
        ]
        whole = np.sum([w * length for w, length in zip(weights, lengths, strict=True)], axis=0)
        norms = form.k1 * ((1 - B) + B * whole / whole.mean())
    total = _sum(
        [
            sparse.csr_array(sparse.diags_array(w) @ each)
            for w, each in zip(weights_, counts, strict=True)
        ]
    )
    total.data = total.data / (np.repeat(norms, np.diff(total.indptr)) + total.data)
    return total


def precisions(world: World, form: Form) -> list[float]:
    """Return the average precision of each judged query at depth 1,000."""
    features = saturations(world.counts, form) @ sparse.diags_array(world.weights)
    return world.judge.measure(_ranked(world, sparse.csr_array(features.T))).values("map")


def _ranked(world: World, features: sparse.csr_array) -> Iterator[Ranking]:
    ids = [document.id for document in world.task.documents]
    for first in range(0, len(world.task.queries), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        scores = (world.asked[chunk] @ features).toarray()
        for query, row_ in zip(world.task.queries[chunk], scores, strict=True):
            best = np.argsort(-row_, kind="stable")[:DEPTH]
            best = best[row_[best] > 0]
            yield Ranking(
                query.id, tuple(ids[each] for each in best), row_[best].astype(np.float32)
            )
