"""Explanations: a score → the parts it is the sum of, and what each is made of."""

from klsa_search.search.explaining.explaining import Explaining
from klsa_search.search.explaining.explanation import Explanation

__all__ = ["Explaining", "Explanation"]
