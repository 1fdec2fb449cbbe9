"""Expand: spectrum → the document expansion D, the latent space, coverage by neighbours."""

from klsa_search.expansion.coverage import coverage
from klsa_search.expansion.document import (
    Expansion,
    FactoredExpansion,
    WholeExpansion,
    expansion_matrix,
)
from klsa_search.expansion.latent import LatentSpace
from klsa_search.expansion.threshold import top_z

__all__ = [
    "Expansion",
    "FactoredExpansion",
    "LatentSpace",
    "WholeExpansion",
    "coverage",
    "expansion_matrix",
    "top_z",
]
