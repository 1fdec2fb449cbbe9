"""How well documents rank that are folded in after the build, beside a build of all documents.

The last fifth of each collection is folded into an index of the others: BM25 knows all of them
exactly, the document kernel by the statistics of the first four fifths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from klsa_search import Index
from klsa_search.collection import Document
from klsa_search.config import SearchSettings
from klsa_search.delta import DeltaSegment, Epoch, Folding, open_epoch
from klsa_search.evaluation import Judge, Ranking
from klsa_search.expansion.cut import CutExpansion
from klsa_search.expansion.packing import LEVELS, pack_table
from klsa_search.features import Vocabulary, bm25
from klsa_search.kernel import Postings, QueryKernel, Weighting
from klsa_search.search import ranking
from klsa_search.search.engine import Engine
from klsa_search.search.snapshot import Snapshot
from studies.effectiveness.measuring import FOUR, Bench, Task, heading, percent, row

SHARE = 0.8  # of the documents that are built


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every average precision."""
    found: dict[str, Any] = {}
    heading("MAP", "BM25", "built at once", "folded in", "change", "without reverse entries")
    for name in FOUR:
        task = Task.of_target(name, data)
        kept = int(SHARE * len(task.documents))
        lexical = bench.precisions(task, {"ranker": "bm25"})
        whole = bench.precisions(task)
        base = bench.index(
            replace(task, documents=task.documents[:kept], corpus=f"{name}-base"), {}
        )
        found[name] = {"bm25": lexical, "whole": whole}
        for label, reverse in (("folded", True), ("one_way", False)):
            snapshot = folded_in(base, task.documents[kept:], reverse=reverse)
            found[name][label] = _precisions(base, snapshot, task)
        means = {label: float(np.mean(values)) for label, values in found[name].items()}
        row(
            name,
            *(f"{means[label]:.4f}" for label in ("bm25", "whole", "folded")),
            percent(means["folded"] / means["whole"] - 1),
            percent(means["one_way"] / means["whole"] - 1),
        )
    return found


def folded_in(index: Index, documents: Sequence[Document], *, reverse: bool = True) -> Snapshot:
    """Put the arrays of an index and of documents that are folded in together.

    reverse  give rows of earlier documents the entries of later ones
    """
    epoch = open_epoch(index.path, index.settings, index.snapshot.vocabulary)
    segment = Folding(epoch).fold(documents)
    terms = epoch.terms + len(segment.new_terms)
    counts = sparse.csr_array(index.snapshot.counts_of(np.arange(epoch.documents)))
    counts.resize((epoch.documents, terms))
    new = segment.matrix()
    new = sparse.csr_array(
        (new.data, segment.terms[new.indices], new.indptr), shape=(len(segment), terms)
    )
    matrix = sparse.csr_array(sparse.vstack((counts, new), format="csr"))
    lengths = np.concatenate((index.snapshot.lengths, segment.lengths))
    average = bm25.standing_length(bm25.average_length(lengths))
    norms = bm25.norms(lengths, average, k1=index.settings.k1, b=index.settings.b)
    settings = index.settings
    weighting = Weighting(settings.burstiness, index.snapshot.common, settings.common_weight)
    kernel = QueryKernel.of(Postings.of(matrix, norms, settings.k1), weighting=weighting)
    vocabulary = Vocabulary(())
    vocabulary.terms = (*epoch.vocabulary.terms, *segment.new_terms)
    vocabulary.numbers = {term: number for number, term in enumerate(vocabulary.terms)}
    return replace(
        index.snapshot,
        vocabulary=vocabulary,
        bm25=kernel,
        lengths=lengths,
        engine=Engine(kernel),
        cut=_joined(epoch, segment, reverse),
    )


def _joined(epoch: Epoch, segment: DeltaSegment, reverse: bool) -> CutExpansion:
    """D of both, positions without a gap between them."""
    cut, size = epoch.cut, epoch.documents
    gap = epoch.first - size
    table = np.concatenate((cut.rows, segment.rows))
    steps = np.concatenate((cut.scales, segment.scales))[:, 0]
    rows, places = np.nonzero(table)
    columns = (table[rows, places] >> np.uint32(8)).astype(np.int64)
    values = (table[rows, places] & np.uint32(LEVELS)) * steps[rows]
    if reverse:
        rows = np.concatenate((rows, _closed(segment.reverse[:, 0], size, gap)))
        columns = np.concatenate((columns, segment.reverse[:, 1]))
        values = np.concatenate((values, segment.reverse_values))
    shape = (len(table), len(table))
    entries = sparse.coo_array((values, (rows, _closed(columns, size, gap))), shape=shape)
    packed, row_steps = pack_table(sparse.csr_array(entries), table.shape[1])
    more = np.zeros((len(segment.new_terms), cut.terms.shape[1]), np.int8)
    diagonal = np.concatenate((cut.scales, segment.scales))[:, 1]
    return replace(
        cut,
        rows=packed,
        scales=np.column_stack((row_steps, diagonal)),
        starts=np.concatenate((cut.starts, segment.feature_starts[1:] + cut.starts[-1])),
        features=np.concatenate((cut.features, segment.features)),
        cards=np.concatenate((cut.cards, segment.cards)),
        terms=np.concatenate((cut.terms, more)),
    )


def _closed(positions: Any, size: int, gap: int) -> Any:
    return np.where(positions < size, positions, positions - gap)


def _precisions(index: Index, snapshot: Snapshot, task: Task) -> list[float]:
    own = {name: getattr(index.settings, name) for name in SearchSettings.model_fields}
    defaults = SearchSettings(**own)
    ranks = ranking.Ranking(snapshot, index.analyzer, defaults)
    ids = np.array([document.id for document in task.documents], dtype=object)
    judge = Judge(task.judgements, measures=("map",))
    judged = frozenset(judge.query_ids)

    def ranked(query: str, text: str) -> Ranking:
        scores = ranks.scores(text, defaults, index.settings.dimensions)
        order = np.argsort(-scores, kind="stable")
        order = order if scores.max(initial=0) > 0 else order[:0]
        return Ranking(query, tuple(ids[order]), scores[order])

    run = (ranked(query.id, query.text) for query in task.queries if query.id in judged)
    return judge.measure(run).values("map")
