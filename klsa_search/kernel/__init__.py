"""Compare: features → document kernel, query → kernel row."""

from klsa_search.kernel.document import DocumentKernel
from klsa_search.kernel.nearest import nearest_rows
from klsa_search.kernel.neighbours import neighbour_graph
from klsa_search.kernel.postings import Postings
from klsa_search.kernel.query import QueryKernel

__all__ = [
    "DocumentKernel",
    "Postings",
    "QueryKernel",
    "nearest_rows",
    "neighbour_graph",
]
