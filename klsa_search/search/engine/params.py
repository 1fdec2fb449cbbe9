"""Parameters of the default ranking, as the engine takes them."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_SEEDS: Final = 1_500
"""Seeds of a query: each may round up the sum of a feature, of 16 bits, by half a step."""


class KlsaParams(NamedTuple):
    """Parameters of the default ranking, see `search.rankers.klsa`."""

    seeds: int  # z, at most N
    best: int  # at least `seeds`, at most N
    alpha: float  # largest share of expansion, coverage and latent together
    hold_back: float  # part of alpha subtracted if the first document contains the whole query
    expansion: float  # shares within alpha
    coverage: float
    latent: float
    sharpness: float
    lexical_sharpness: float
    coverage_power: float
    unit_length: bool
    slope: float  # of D over K
    mean_square: float


class RerankDepths(NamedTuple):
    """How many candidates are rescored."""

    coverage_depth: int  # candidates whose T is computed exactly
    expansion_depth: int  # candidates whose E is computed exactly
    filtered: int  # best documents within a mask that are candidates
    look_up_all: bool  # the mask has at most `filtered` documents: look up each
