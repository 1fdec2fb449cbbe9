"""Semantic smoothing: matching of terms through a network such as WordNet [LSK 2002].

WordNet files, see wndb(5WN), have these lines; those of the licence begin with a blank:

    index.noun  lemma pos synsets pointers [symbol]... senses tagged offset...
    data.noun   offset file type words(hex) [word id]... pointers [symbol offset pos ends]...
                | gloss
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array

from klsa_search.errors import ArgumentError
from klsa_search.estimators.base import Kernel, Points

_Parsed = TypeVar("_Parsed")

_HYPERNYMS: Final = {"@", "@i"}  # hypernym and instance hypernym


def read_nouns(folder: Path) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """Return lemma → synsets, and pairs of a synset and its hypernym.

    Words of a lemma are separated by blanks. ArgumentError if a file is missing or a line invalid.
    """
    meanings = dict(_read(folder / "index.noun", _meanings))
    edges = [edge for pairs in _read(folder / "data.noun", _hypernyms) for edge in pairs]
    return meanings, edges


def _meanings(fields: list[str]) -> tuple[str, tuple[str, ...]]:
    synsets, symbols = int(fields[2]), int(fields[3])
    offsets = tuple(fields[6 + symbols :])
    if len(offsets) != synsets or not all(map(str.isdigit, offsets)):
        raise ValueError
    return fields[0].replace("_", " "), offsets


def _hypernyms(fields: list[str]) -> list[tuple[str, str]]:
    offset, words = fields[0], int(fields[3], 16)
    begin = 4 + 2 * words
    pointers = fields[begin + 1 :]
    if not offset.isdigit() or len(pointers) != 4 * int(fields[begin]):
        raise ValueError
    return [
        (offset, above)
        for symbol, above in zip(pointers[::4], pointers[1::4], strict=True)
        if symbol in _HYPERNYMS
    ]


def _read(path: Path, parse: Callable[[list[str]], _Parsed]) -> Iterator[_Parsed]:
    """Yield each line parsed; ArgumentError if `parse` raises ValueError or IndexError."""
    if not path.is_file():
        raise ArgumentError(
            f"`{path}` is missing; name the folder with index.noun and data.noun of WordNet",
            field="folder",
        )
    # Bytes that are not UTF-8 only affect their own lemma or gloss.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith(" "):
                continue
            try:
                parsed = parse(line.split("|")[0].split())
            except (ValueError, IndexError):
                raise ArgumentError(
                    f"{path}:{number} is not a line of a WordNet database; give "
                    "the files as WordNet distributes them",
                    field="folder",
                ) from None
            yield parsed


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
        self, meanings: Mapping[str, Iterable[Hashable]], edges: Iterable[tuple[Hashable, Hashable]]
    ) -> None:
        self._meanings = {term: tuple(nodes) for term, nodes in meanings.items()}
        pairs = list(edges)
        nodes = dict.fromkeys(chain(*self._meanings.values(), *pairs))
        self._numbers = {node: number for number, node in enumerate(nodes)}
        ends = [(self._numbers[one], self._numbers[other]) for one, other in pairs]
        directed = _matrix(ends, (len(nodes), len(nodes)))
        self._edges = directed + directed.T

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
        numbers = [
            (row, self._numbers[node])
            for row, term in enumerate(terms)
            for node in self._meanings.get(term, ())
        ]
        reach = meanings = _matrix(numbers, (len(terms), len(self._numbers)))
        proximities = sparse.eye_array(len(terms), format="csr")
        for length in range(longest + 1):
            together = (reach @ meanings.T).astype(bool)
            proximities = proximities.maximum(together.astype(np.float64) / (1 + length))
            reach = (reach + reach @ self._edges).astype(bool).astype(np.float64)
        return proximities


def _matrix(cells: Sequence[tuple[int, int]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


class SemanticSmoothingKernel(Kernel):
    """Semantic smoothing kernel: k(x, z) = (Rx)ᵀ(Rz), which matches terms through given concepts.

    concepts  R: (C, V) dense or sparse, the weight of each of V terms in each of C concepts; for
              example a matrix of terms (V, V) as `TermNetwork.proximities` returns. None is the
              inner product

    concepts_  R, checked

    Cost: `fit` nothing; `transform` one product with R. Source: Cristianini, Shawe-Taylor & Lodhi,
    JIIS 2002.

    >>> concepts = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> SemanticSmoothingKernel(concepts).fit_transform(counts)
    array([[3., 0.],
           [3., 0.],
           [0., 2.],
           [1., 2.]])
    """

    def __init__(self, concepts: npt.ArrayLike | sparse.sparray | None = None) -> None:
        self.concepts = concepts

    def _learn(self, points: Points, y: Any) -> None:
        V = points.shape[1]
        if self.concepts is None:
            self.concepts_ = sparse.eye_array(V, format="csr")
            return
        vectors = check_array(
            self.concepts, accept_sparse="csr", dtype=np.float64, input_name="concepts"
        )
        if vectors.shape[1] != V:
            raise ArgumentError(
                f"concepts has {vectors.shape[1]} columns, and X {V}; give one "
                "column a term, in the order of X",
                field="concepts",
            )
        self.concepts_ = sparse.csr_array(vectors) if sparse.issparse(vectors) else vectors

    def _embed(self, points: Points) -> Points:
        placed = points @ self.concepts_.T
        return sparse.csr_array(placed) if sparse.issparse(placed) else np.asarray(placed)
