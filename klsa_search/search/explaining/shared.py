"""What two documents share, by name: features of the document kernel, and terms behind them."""

from __future__ import annotations

from typing import Final

import numpy as np

from klsa_search.expansion.packing import LEVELS
from klsa_search.search.coverage import Numbers, Values
from klsa_search.search.explaining.explanation import SharedTerm
from klsa_search.search.snapshot import Snapshot

MOST: Final = 5
"""Maximum number of reported common features of two documents."""


class Features:
    """Compares documents feature by feature.

    Where D is not cut, pairs of terms have no names: only terms are reported.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def shared(self, document: int, others: list[int]) -> list[tuple[SharedTerm, ...]]:
        """Tell what a document shares with others, the strongest first.

        Cost: their features, and 25 ns for each pair of terms that is a feature, once an index.
        """
        numbers, values = self._of(document)
        found: list[tuple[Numbers, Values]] = []
        for other in others:
            theirs, weights = self._of(other)
            both, mine, other_places = np.intersect1d(
                numbers, theirs, assume_unique=True, return_indices=True
            )
            products = values[mine] * weights[other_places]
            shares = products / max(float(products.sum()), 1e-300)
            found.append((both, shares))
        names = self._names(found)
        result = []
        for both, shares in found:
            first = np.lexsort((both, -shares))
            named = [
                (names[int(both[i])], float(shares[i])) for i in first if int(both[i]) in names
            ]
            result.append(tuple(SharedTerm(term=name, share=share) for name, share in named[:MOST]))
        return result

    def _of(self, document: int) -> tuple[Numbers, Values]:
        cut = self._snapshot.cut
        if cut is None:
            features = self._snapshot.kernel.features
            row = slice(features.indptr[document], features.indptr[document + 1])
            return features.indices[row].astype(np.int64), features.data[row].astype(np.float64)
        entries = cut.features[cut.starts[document] : cut.starts[document + 1]]
        values = cut.facts[document, 0] * (entries & np.uint32(LEVELS)).astype(np.float64)
        return (entries >> np.uint32(8)).astype(np.int64), values

    def _names(self, found: list[tuple[Numbers, Values]]) -> dict[int, str]:
        """Names of the strongest of each, and of any number of others."""
        terms = self._snapshot.vocabulary.terms
        if self._snapshot.cut is None:
            every = np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in found)])
            return {n: terms[n] for n in np.unique(every).tolist() if n < len(terms)}
        strongest = [numbers[np.lexsort((numbers, -shares))[:MOST]] for numbers, shares in found]
        wanted = np.unique(np.concatenate([np.zeros(0, np.int64), *strongest]))
        pairs = self._snapshot.pairs
        size = len(pairs.terms)  # of the epoch, which later terms are no part of
        places = pairs.places[wanted].astype(np.int64)
        lesser = np.searchsorted(pairs.starts, places - size, side="right") - 1
        names: dict[int, str] = {}
        for feature, place, term in zip(
            wanted.tolist(), places.tolist(), lesser.tolist(), strict=True
        ):
            if place < size:
                names[feature] = terms[place]
            else:
                greater = terms[int(pairs.greater[place - size])]
                names[feature] = f"{terms[term]} {greater}"
        return names
