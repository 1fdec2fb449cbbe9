"""Compare: features → document kernel, query → kernel row."""

from klsa_search.kernel.document import DocumentKernel
from klsa_search.kernel.nearest import nearest_rows
from klsa_search.kernel.neighbours import neighbour_graph
from klsa_search.kernel.postings import Postings

__all__ = [
    "DocumentKernel",
    "Postings",
    "nearest_rows",
    "neighbour_graph",
]
