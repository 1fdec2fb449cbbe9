"""What routing by topic saves: MAP with partitions by hash and by topic, and lost neighbours.

Neighbours of a document are looked for in its own partition. Partitions by the hash of IDs keep
1 / P of the neighbours; partitions by topic keep more. A topic is a cluster of the latent space:
spherical k-means, with at most `MOST` times the mean number of documents in each cluster. `p` is
of a paired randomisation test of both routings. Neighbours are those that count for coverage in
one partition; queries are read as plain words, and documents are not divided into passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from klsa_search import Index
from klsa_search.core.array_types import Matrix
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import AS_WORDS, rank_best
from klsa_search.indexing import partitions
from klsa_search.mining.clusters import k_means
from klsa_search.storage.partitions import partition_of
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import (
    Bench,
    Precisions,
    Task,
    chance,
    heading,
    percent,
    row,
)
from studies.effectiveness.partitions import NUMBERS, checked_names

MOST: Final = 1.1
"""Documents of the largest partition by topic, of the mean number."""

ROUTINGS: Final = ("hash", "topic")
_ROUNDS: Final = 20
_SEED: Final = 0

_Labels = npt.NDArray[np.int64]


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the average precision of every query. `names`: only these."""
    found: dict[str, Any] = {}
    heading(
        *("", "documents", "queries", "P", "P = 1", "by hash", "change", "by topic", "change", "p"),
        *("neighbours kept by hash", "by topic", "largest", "smallest"),
    )
    for name in checked_names(names):
        found[name] = _measured(bench, task_of(name, data))
        _print(name, found[name])
    for number in map(str, NUMBERS):
        each = [one[number] for one in found.values()]
        cells = [percent(float(np.mean([one[by]["change"] for one in each]))) for by in ROUTINGS]
        kept = [f"{np.mean([one[by]['kept'] for one in each]):.2f}" for by in ROUTINGS]
        row("mean", "", "", number, "", "", cells[0], "", cells[1], "", *kept, "", "")
    return found


def _print(name: str, found: dict[str, Any]) -> None:
    one = found["precisions"]
    for number in map(str, NUMBERS):
        by_hash, by_topic = (found[number][routing] for routing in ROUTINGS)
        row(
            *(name, f"{found['documents']:,}", f"{len(one):,}", number, f"{np.mean(one):.4f}"),
            *(f"{np.mean(by_hash['precisions']):.4f}", percent(by_hash["change"])),
            *(f"{np.mean(by_topic['precisions']):.4f}", percent(by_topic["change"])),
            f"{chance(by_topic['precisions'], by_hash['precisions']):.4f}",
            *(f"{by_hash['kept']:.2f}", f"{by_topic['kept']:.2f}"),
            *(f"{max(by_topic['sizes']):,}", f"{min(by_topic['sizes']):,}"),
        )


def _measured(bench: Bench, task: Task) -> dict[str, Any]:
    """Return the figures of one collection, by number of partitions and routing."""
    whole = bench.index(task, {"passages": "off"})
    ids, latent = whole.ids(), whole.arrays.latent
    assert latent is not None  # the default settings ask for it
    one = _precisions(whole, task)
    found: dict[str, Any] = {"documents": len(ids), "precisions": one}
    for number in NUMBERS:
        found[str(number)] = {}
        by_hash = np.array([partition_of(id_, number) for id_ in ids])
        by_topic = topics(latent.documents, number)
        for routing, labels in zip(ROUTINGS, (by_hash, by_topic), strict=True):
            precisions = _precisions(_routed(bench, task, routing, number, ids, labels), task)
            found[str(number)][routing] = {
                "change": float(np.mean(precisions) / np.mean(one) - 1),
                "kept": kept(whole, labels),
                "sizes": np.bincount(labels, minlength=number).tolist(),
                "precisions": precisions,
            }
    return found


def _routed(
    bench: Bench, task: Task, routing: str, number: int, ids: Sequence[str], labels: _Labels
) -> Index:
    """Return the index of a task with each document in the partition of its label."""
    label_of = dict(zip(ids, labels.tolist(), strict=True))
    divided = replace(task, corpus=f"{task.name}-{number}-{routing}")
    with patch.object(partitions, "partition_of", lambda id_, _: label_of[id_]):
        return bench.index(divided, {"passages": "off", "partitions": number})


def _precisions(index: Index, task: Task) -> Precisions:
    """Return the average precision of each judged query."""
    judge = Judge(task.judgements, measures=("map",))
    judged = frozenset(judge.query_ids)
    queries = [query for query in task.queries if query.id in judged]
    return judge.measure(rank_best(index, queries, **AS_WORDS)).values("map")


def kept(whole: Index, labels: _Labels) -> float:
    """Return the share of neighbours in one partition that have the label of the document."""
    expansion = whole.arrays.sparse_expansion
    assert expansion is not None  # partitions need one
    rows = expansion.rows[:, : whole.settings.neighbours]
    documents, places = np.nonzero(rows)
    neighbours = rows[documents, places] >> np.uint32(8)
    return float(np.mean(labels[documents] == labels[neighbours]))


def topics(coordinates: Matrix, number: int) -> _Labels:
    """Return the cluster of each document, by balanced spherical k-means: (N,).

    coordinates  (N, m) of length 1 or 0
    """
    documents = len(coordinates)
    most = max(int(MOST * documents / number), -(-documents // number))
    centres, _ = k_means(np.asarray(coordinates, np.float64), number, _SEED)
    labels = np.full(documents, -1)
    for _ in range(_ROUNDS):
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        before, labels = labels, _balanced(coordinates @ centres.T, most)
        if np.array_equal(before, labels):
            break
        centres = np.stack([coordinates[labels == one].sum(axis=0) for one in range(number)])
    return labels


def _balanced(cosines: Matrix, most: int) -> _Labels:
    """Return the nearest cluster with room for each document: (N, P) → (N,).

    The documents that would lose most by their second cluster choose first.
    """
    preferred = np.argsort(-cosines, axis=1, kind="stable")
    best = np.take_along_axis(cosines, preferred, axis=1)
    choices, labels = preferred.tolist(), np.zeros(len(cosines), np.int64)
    room = [most] * cosines.shape[1]
    for document in np.argsort(best[:, 1] - best[:, 0], kind="stable").tolist():
        label = next(one for one in choices[document] if room[one])
        room[label] -= 1
        labels[document] = label
    return labels
