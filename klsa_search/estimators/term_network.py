"""Terms in a network of meanings, near each other by inverse path length [LSK 2002]."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path

import numpy as np
from scipy import sparse

from klsa_search.errors import ArgumentError
from klsa_search.estimators.wordnet import read_nouns


class TermNetwork:
    """Network of meanings, such as WordNet, that relates terms by the length of paths.

    meanings  nodes of each term
    edges     pairs of connected nodes, in both directions

    Source: Cristianini, Shawe-Taylor & Lodhi, JIIS 2002.

    >>> network = TermNetwork.of_terms([("dog", "wolf"), ("wolf", "animal")])
    >>> network.proximities(["dog", "animal"]).toarray().round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """

    def __init__(
        self,
        meanings: Mapping[str, Iterable[Hashable]],
        edges: Iterable[tuple[Hashable, Hashable]],
    ) -> None:
        self._meanings = {term: tuple(nodes) for term, nodes in meanings.items()}
        self._neighbours: dict[Hashable, list[Hashable]] = {}
        for one, other in edges:
            self._neighbours.setdefault(one, []).append(other)
            self._neighbours.setdefault(other, []).append(one)

    @classmethod
    def of_terms(cls, edges: Iterable[tuple[str, str]]) -> TermNetwork:
        """Return a network of terms that are connected directly."""
        pairs = list(edges)
        return cls({term: (term,) for pair in pairs for term in pair}, pairs)

    @classmethod
    def wordnet(cls, folder: str | os.PathLike[str]) -> TermNetwork:
        """Return the network of the nouns of WordNet 2.x or 3.x and their hypernyms.

        folder  folder with the files data.noun and index.noun of WordNet; nothing is downloaded

        Terms are lower-case lemmas, with blanks between words: use features that are not
        stemmed. ArgumentError if a file is missing or has another format.
        """
        return cls(*read_nouns(Path(folder)))

    def proximities(self, terms: Sequence[str], *, longest: int = 3) -> sparse.csr_array:
        """Return 1 / (1 + length of the shortest path) of all pairs of terms: (V, V), sparse.

        terms    V terms, in the order of the features
        longest  maximum number of edges of a path; terms further apart have 0

        The value is 1 for a term and itself, and for two terms that share a meaning. The matrix
        is symmetric. Cost: O(V · nodes within reach).
        """
        if not isinstance(longest, Integral) or longest < 0:
            raise ArgumentError(
                f"longest = {longest!r} is not a whole number of at least 0; give "
                "the edges of the longest path",
                field="longest",
            )
        terms_at: dict[Hashable, list[int]] = {}
        for number, term in enumerate(terms):
            for node in self._meanings.get(term, ()):
                terms_at.setdefault(node, []).append(number)
        starts, columns = [0], list[int]()
        values: list[float] = []
        for number, term in enumerate(terms):
            lengths = {number: 0}
            for node, length in self._within(self._meanings.get(term, ()), longest).items():
                for other in terms_at.get(node, ()):
                    lengths.setdefault(other, length)
            columns.extend(sorted(lengths))
            values.extend(1 / (1 + lengths[other]) for other in sorted(lengths))
            starts.append(len(columns))
        shape = (len(terms), len(terms))
        return sparse.csr_array((np.array(values, dtype=np.float64), columns, starts), shape=shape)

    def _within(self, nodes: Iterable[Hashable], longest: int) -> dict[Hashable, int]:
        """Edges to every node within reach of `nodes`, nearest first."""
        reached = dict.fromkeys(nodes, 0)
        border = list(reached)
        for length in range(1, longest + 1):
            border = [
                other
                for other in dict.fromkeys(
                    other for node in border for other in self._neighbours.get(node, ())
                )
                if other not in reached
            ]
            reached.update(dict.fromkeys(border, length))
        return reached
