"""Similar documents by words, by vectors of an embedding model, and by their sum.

Of each document that is relevant to a query with other relevant documents, the share of its ten
nearest that are relevant to the same query; of the most possible, if there are fewer than ten
others. At most 600 documents of a collection are drawn. `p` is of the sum and the latent space. Of
Reuters-21578, stories of one of eight topics: the share of the ten nearest with the same topic.

Vectors are those of `studies.effectiveness vectors`: in the folder $KLSA_VECTORS, or embedded by
the model $KLSA_MODEL. A collection without vectors is left out.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search import Index
from klsa_search.core.array_types import Matrix
from klsa_search.mining.duplicates import normalised
from klsa_search.mining.similar import document_coordinates
from studies.datasets import reuters_folder
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Bench, Precisions, Task, chance, heading, percent, row
from studies.effectiveness.reuters import Labelled, labelled
from studies.effectiveness.vectors import SPACE, index_with_vectors

REUTERS: Final = "reuters"
TASKS: Final = ("adi", "cacm", "cisi", "cran", "lisa", "med", "time", REUTERS)
KERNELS: Final = ("latent", "document", f"vectors:{SPACE}", f"sum:{SPACE}")
NEAREST: Final = 10
TOPICS: Final = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")
_STORIES: Final = 500
_DRAWN: Final = 600


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the precision of every document. `names`: only these tasks."""
    found: dict[str, Any] = {}
    heading("", "documents", *KERNELS, "gain", "p")
    for name in names or TASKS:
        if not _has_vectors(name):
            print(f"{name} is left out: its vectors are not in $KLSA_VECTORS, and no $KLSA_MODEL")
            continue
        if name == REUTERS:
            stories = _stories(labelled(reuters_folder()))
            index = index_with_vectors(bench, Task(name, [one.document for one in stories], [], []))
            topics = np.array([story.topics[0] for story in stories])
            groups = [np.flatnonzero(topics == topic).tolist() for topic in np.unique(topics)]
        else:
            task = task_of(name, data)
            index = index_with_vectors(bench, task)
            groups = _relevant(index, task)
        found[name] = {kernel: _precisions(index, groups, kernel) for kernel in KERNELS}
        _print(name, found[name])
    means = [np.mean([np.mean(each[kernel]) for each in found.values()]) for kernel in KERNELS]
    row("mean", "", *(f"{mean:.3f}" for mean in means), percent(means[-1] / means[0] - 1), "")
    return found


def _stories(stories: list[Labelled]) -> list[Labelled]:
    """Return at most 500 random stories of each topic that have no other."""
    single = [story for story in stories if len(story.topics) == 1]
    random.Random(0).shuffle(single)
    by_topic = {topic: [one for one in single if one.topics[0] == topic] for topic in TOPICS}
    return [story for of_topic in by_topic.values() for story in of_topic[:_STORIES]]


def _print(name: str, found: dict[str, Precisions]) -> None:
    means = [float(np.mean(found[kernel])) for kernel in KERNELS]
    p = chance(found[KERNELS[-1]], found[KERNELS[0]])
    shown = (f"{mean:.3f}" for mean in means)
    row(name, len(found[KERNELS[0]]), *shown, percent(means[-1] / means[0] - 1), f"{p:.4f}")


def _has_vectors(name: str) -> bool:
    folder = os.environ.get("KLSA_VECTORS")
    stored = folder is not None and (Path(folder) / f"{name}.npz").is_file()
    return stored or "KLSA_MODEL" in os.environ


def _relevant(index: Index, task: Task) -> list[list[int]]:
    """Return the doc ids of the documents that are relevant to each query."""
    by_query: dict[str, set[str]] = {}
    known = set(index.ids())
    for judgement in task.judgements:
        if judgement.grade > 0 and judgement.document_id in known:
            by_query.setdefault(judgement.query_id, set()).add(judgement.document_id)
    return [sorted(index.doc_ids(sorted(ids))) for ids in by_query.values()]


def _precisions(index: Index, groups: Sequence[Sequence[int]], kernel: str) -> Precisions:
    """Return the share of the nearest that are in a group with the document, for some documents."""
    others: dict[int, set[int]] = {}
    for group in groups:
        for document in group:
            others.setdefault(document, set()).update(group)
    drawn = np.array(sorted(one for one, near in others.items() if len(near) > 1))
    if len(drawn) > _DRAWN:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, _DRAWN, replace=False))
    rows = _rows(index, drawn, kernel)
    rows[np.arange(len(drawn)), drawn] = -np.inf
    nearest = np.argsort(-rows, axis=1, kind="stable")[:, :NEAREST]
    return [
        len(others[document].intersection(row_)) / min(NEAREST, len(others[document]) - 1)
        for document, row_ in zip(drawn.tolist(), nearest.tolist(), strict=True)
    ]


def _rows(index: Index, doc_ids: npt.NDArray[np.int64], kernel: str) -> Matrix:
    if kernel == "document":
        return normalised(index.arrays.kernel).rows(doc_ids)
    coordinates = document_coordinates(index, kernel)
    return np.asarray(coordinates[doc_ids] @ coordinates.T)
