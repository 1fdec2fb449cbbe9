"""The pieces of a score, by numbers of documents and terms, before they have names."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from klsa_search.arrays import Positions
from klsa_search.search.coverage import Covered, Values


class Pieces(NamedTuple):
    """A score of the default ranking, in its pieces, all in units of the score.

    lexical    α's rest of it
    covered    T, whose `value` are shares of the score here; None where it has no share
    seeds      (z,) with their weights, in the order of the query kernel
    by_seed    (z,) what each adds to `expansion`
    estimated  names of parts
    """

    alpha: float
    lexical: float
    covered: Covered | None
    latent: float | None
    expansion: float
    seeds: Positions
    weights: Values
    by_seed: Values
    estimated: tuple[str, ...]


class Splitting(Protocol):
    """Takes scores of one query apart."""

    def pieces(self, document: int, score: float | None) -> Pieces:
        """Take that of a document apart; the score it was answered with, if it was."""
