"""Expand: spectrum → the document expansion D."""

from klsa_search.expansion.document import (
    Expansion,
    FactoredExpansion,
    WholeExpansion,
    expansion_matrix,
)
from klsa_search.expansion.threshold import top_z

__all__ = ["Expansion", "FactoredExpansion", "WholeExpansion", "expansion_matrix", "top_z"]
