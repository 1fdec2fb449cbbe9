"""Search: query → ranked hits."""

from klsa_search.search.explaining import Explanation
from klsa_search.search.facets import Facet
from klsa_search.search.highlights import Highlight
from klsa_search.search.index import Index
from klsa_search.search.opening import list_indexes, open_index
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.suggest import Suggestion
from klsa_search.search.wishes import SearchOptions

__all__ = [
    "Explanation",
    "Facet",
    "Highlight",
    "Hit",
    "Index",
    "SearchOptions",
    "SearchResults",
    "Suggestion",
    "list_indexes",
    "open_index",
]
