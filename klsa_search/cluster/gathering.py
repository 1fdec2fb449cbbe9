"""Combine what shards returned for their own documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.cluster.messages import Floats, Found, Rows
from klsa_search.search.engine import Mix
from klsa_search.search.engine.comparing import Features
from klsa_search.search.engine.formulas import Entries

_Numbers = npt.NDArray[np.int64]


class Seeds(NamedTuple):
    """What was returned for the seeds, in their order."""

    rows: Rows
    features: Features
    cards: npt.NDArray[np.int8]

    def nearest(self, count: int) -> Entries:
        """The nearest of each: (z, count)."""
        firsts = np.flatnonzero(np.diff(self.rows.documents, prepend=-1) != 0)
        return self.rows.entries[firsts][:, :count]


def merged(lists: Sequence[tuple[Positions, _Numbers]], count: int) -> tuple[_Numbers, _Numbers]:
    """The best of several lists of documents and steps, ties by document order."""
    documents = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in lists)])
    steps = np.concatenate([np.zeros(0, np.int64), *(each for _, each in lists)])
    order = np.lexsort((documents, -steps))[:count]
    return documents[order], steps[order]


def gathered(
    documents: _Numbers, returned: Sequence[Positions], rows: Sequence[npt.NDArray[np.uint16]]
) -> npt.NDArray[np.uint16]:
    """Rows of some documents out of those returned, of each shard for its own documents."""
    every = np.concatenate(returned)
    order = np.argsort(every)
    return np.concatenate(rows)[order[np.searchsorted(every[order], documents)]]


def of_seeds(found: Sequence[Found], seeds: _Numbers) -> Seeds:
    """Gather what was returned for the seeds."""
    of = {
        int(document): (each, at)
        for each in found
        for at, document in enumerate(each.documents[: len(each.cards)])
    }
    documents, entries, steps, features, facts, cards = [], [], [], [], [], []
    for seed in seeds.tolist():
        each, at = of[seed]
        own = np.flatnonzero(each.rows.documents == seed)
        documents.append(each.rows.documents[own])
        entries.append(each.rows.entries[own])
        steps.append(each.rows.steps[own])
        features.append(each.features.entries[slice(*each.features.starts[at : at + 2])])
        facts.append(each.features.facts[at])
        cards.append(each.cards[at])
    starts = np.cumsum([0, *map(len, features)])
    return Seeds(
        Rows(np.concatenate(documents), np.concatenate(entries), np.concatenate(steps)),
        Features(starts, np.concatenate(features), np.array(facts, np.float32)),
        np.array(cards, np.int8),
    )


def weighed(
    rows: Rows, seeds: _Numbers, weights: Floats, mix: Mix
) -> Iterator[tuple[Entries, np.float32]]:
    """Rows of the seeds that count, and what a level of each is worth."""
    of = dict(zip(seeds.tolist(), weights, strict=True))
    for document, entries, step in zip(
        rows.documents.tolist(), rows.entries, rows.steps, strict=True
    ):
        weight = of[document]
        if weight > 0:
            yield entries, np.float32(mix.slope) * weight * step
