"""Search that learns from your own documents which words are related.

>>> import klsa_search as klsa
>>> index = klsa.build("reports.jsonl", name="reports")
>>> for hit in index.search("leaking coolant", k=2):
...     print(hit.rank, hit.title, hit.snippet)
1 Leaks Coolant leaks from old hoses; look for stains below the pump.
2 Overheating An engine that overheats has lost coolant, or its pump has failed.
>>> index.add([{"id": "horn", "text": "A horn that will not sound."}])  # searchable at once
1
>>> index.close()
>>> index = klsa.open_index("index/reports")
>>> klsa.list_indexes("index"), klsa.__version__ >= "1.0"
(['reports'], True)

`Index` has all methods, with examples; docs/guides/python-programs.md says how to use them.

Public API: the names of this package and of its packages `collection`, `embedding`, `estimators`,
`indexing`, `mining`, `plugins` and `plugins.testing`, the clients of `client`, the errors of
`errors`, and of `analysis` the `Analyzer` with `Token`, `languages` and `stemmers`; of `connect`
what docs/guides/integrations.md shows. Everything else may change with any version.
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

if find_spec("klsa_search._native") is None:
    raise ModuleNotFoundError(
        f"the extension module of klsa_search is not compiled in {__path__[0]}: start Python in "
        "another folder if klsa-search is installed, else run `pip install -e .` in the clone",
        name="klsa_search._native",
    )

if TYPE_CHECKING:
    from klsa_search.collection.model import Document as Document
    from klsa_search.core.config import IndexSettings as IndexSettings
    from klsa_search.core.installation import __version__ as __version__
    from klsa_search.core.parameters import SearchParameters as SearchParameters
    from klsa_search.errors import KlsaError as KlsaError
    from klsa_search.indexing.build import build as build
    from klsa_search.search.explain.explanation import Explanation as Explanation
    from klsa_search.search.index import Index as Index
    from klsa_search.search.index import list_indexes as list_indexes
    from klsa_search.search.index import open_index as open_index
    from klsa_search.search.pages.excerpts import Excerpt as Excerpt
    from klsa_search.search.pages.facets import Facet as Facet
    from klsa_search.search.pages.results import Highlight as Highlight
    from klsa_search.search.pages.results import Hit as Hit
    from klsa_search.search.pages.results import RerankScore as RerankScore
    from klsa_search.search.pages.results import SearchResults as SearchResults
    from klsa_search.search.query.interpretation import QueryInterpretation as QueryInterpretation
    from klsa_search.search.query.query import Query as Query
    from klsa_search.search.query.query import SearchOptions as SearchOptions
    from klsa_search.storage.columns.columns import Field as Field
else:
    from klsa_search.core.lazy import lazy_exports

    _NAMES = {
        "collection.model": "Document",
        "core.config": "IndexSettings",
        "core.parameters": "SearchParameters",
        "core.installation": "__version__",
        "errors": "KlsaError",
        "indexing.build": "build",
        "search.explain.explanation": "Explanation",
        "search.index": "Index list_indexes open_index",
        "search.pages.excerpts": "Excerpt",
        "search.pages.facets": "Facet",
        "search.query.query": "Query SearchOptions",
        "search.pages.results": "Highlight Hit RerankScore SearchResults",
        "search.query.interpretation": "QueryInterpretation",
        "storage.columns.columns": "Field",
    }
    __all__, __getattr__, __dir__ = lazy_exports(globals(), _NAMES)


# The application decides where warnings go; by default they are discarded.
logging.getLogger(__name__).addHandler(logging.NullHandler())
