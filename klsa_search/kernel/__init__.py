"""Compare: features → document kernel, query → kernel row."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.kernel.document import DocumentKernel
    from klsa_search.kernel.nearest import nearest_rows
    from klsa_search.kernel.neighbours import neighbour_graph
    from klsa_search.kernel.postings import Postings
    from klsa_search.kernel.query import Gone, QueryKernel, Weighting
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "document": "DocumentKernel",
            "nearest": "nearest_rows",
            "neighbours": "neighbour_graph",
            "postings": "Postings",
            "query": "Gone QueryKernel Weighting",
        },
    )

__all__ = [
    "DocumentKernel",
    "Gone",
    "Postings",
    "QueryKernel",
    "Weighting",
    "nearest_rows",
    "neighbour_graph",
]
