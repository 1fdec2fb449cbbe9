"""Search that learns the meaning of words from your own documents.

import klsa_search as klsa

index = klsa.build("reports.jsonl", name="reports")
for hit in index.search("engines that overheat", k=5):
    print(hit.rank, hit.title, hit.snippet)
"""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.collection.model import Document
    from klsa_search.errors import KlsaError
    from klsa_search.indexing.build import build
    from klsa_search.search.index import Index
    from klsa_search.search.opening import list_indexes, open_index
    from klsa_search.search.results import Hit, Results
    from klsa_search.version import __version__
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "collection.model": "Document",
            "errors": "KlsaError",
            "indexing.build": "build",
            "search.index": "Index",
            "search.opening": "list_indexes open_index",
            "search.results": "Hit Results",
            "version": "__version__",
        },
    )

__all__ = [
    "Document",
    "Hit",
    "Index",
    "KlsaError",
    "Results",
    "__version__",
    "build",
    "list_indexes",
    "open_index",
]
