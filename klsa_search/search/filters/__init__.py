"""Filters: what the metadata of a document must be, read from text or JSON, as masks."""

from klsa_search.search.filters.mapping import filter_of_mapping
from klsa_search.search.filters.masks import Masks, mask_of
from klsa_search.search.filters.text import filter_of_text
from klsa_search.search.filters.tree import Condition, Every, Filter, Not, Some

__all__ = [
    "Condition",
    "Every",
    "Filter",
    "Masks",
    "Not",
    "Some",
    "filter_of_mapping",
    "filter_of_text",
    "mask_of",
]
