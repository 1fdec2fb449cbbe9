"""Facet search: the values of a metadata field that contain typed text, with their counts."""

from __future__ import annotations

import sys
from dataclasses import replace

from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.index import Index
from klsa_search.search.pages.facets import Facet


def facet_search(
    index: Index,
    field: str,
    facet_query: str,
    k: int = 10,
    *,
    query: str = "",
    filter: FilterLike | None = None,  # noqa: A002 - as in `Index.search`
) -> Facet:
    """Return the k values of a metadata field that contain the text `facet_query`.

    Values that begin with it come first, then the most frequent; blank text finds every value. Case
    and accents are folded as in searches. Counts and `missing` are those of a search for `query`
    with `filter`, or of all documents; `other_count` counts further values that contain the text.
    Numbers and dates count as texts: 2024, 2024-03-01T00:00:00Z. QueryError as in `Index.search`.
    Cost: that of the search, and 1 µs for each distinct value.
    """
    index.fields.filterable(field, "field")  # names the right parameter in its error
    is_everything = not query.strip() and filter is None
    results = index.search(
        query,
        1,
        filter=filter,
        sort=(field,) if is_everything else (),  # a blank query alone finds nothing
        facets=(field,),
        max_facet_values=sys.maxsize,
    )
    facet, folded = results.facets[field], index.analyzer.folded
    wanted = folded(facet_query.strip())
    matches = [(folded(str(value)).find(wanted), value, count) for value, count in facet.values]
    matches = sorted((match for match in matches if match[0] >= 0), key=lambda match: match[0] > 0)
    values = tuple((value, count) for _, value, count in matches[:k])
    return replace(facet, values=values, other_count=len(matches) - len(values))
