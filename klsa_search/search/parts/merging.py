"""The pages of several parts as one: the order of their documents, and their facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key, partial
from heapq import heapify, heappop
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.search.engine.snapshot import FIRST_LATER
from klsa_search.search.pages.applied_rules import free_positions, placed
from klsa_search.search.pages.facets import Facet, comparable
from klsa_search.search.parts.part_search import PartPage


class PageEntry(NamedTuple):
    """A document of the merged order: partition, and position in its page."""

    partition: int
    position: int


def merged_order(
    pages: Sequence[PartPage | None], sort: Sequence[str], size: int, wanted: int
) -> list[PageEntry]:
    """Return the first documents of all pages in order: as sorted, by score, by ordinal.

    size    of a page, which is merged of the first of each partition that are on pages up to it:
            later ones may score higher (`collectors.by_score`), and would move into earlier pages
    wanted  number of documents; pinned ones may follow
    If values must be distinct, only the first document of each; one without a value counts as
    distinct. Pinned documents are at their positions.
    """
    answered = [(number, page) for number, page in enumerate(pages) if page is not None]
    moves = sort or any(
        p.pins or p.has_id_match or p.distinct or p.typed_matches for _, p in answered
    )
    if not moves and wanted <= size:
        entries = [PageEntry(n, at) for n, page in answered for at in range(len(page.doc_ids))]
        first = by_score([page for _, page in answered])[:wanted].tolist()
        return [entries[at] for at in first]
    pinned = sorted(
        (pin.precedence, pin, PageEntry(number, position))
        for number, page in answered
        for position, pin in enumerate(page.pins)
    )
    first_is_taken = any(page.has_id_match for _, page in answered)
    pins = {entry: pin for _, pin, entry in pinned}
    position_of = free_positions(pins, first_is_taken=first_is_taken)
    descending = [spec.endswith(":desc") for spec in sort]
    seen: set[Any] = set()

    def value_of(entry: PageEntry) -> Any:
        page = pages[entry.partition]
        assert page is not None
        is_missing, value = page.distinct[entry.position] if page.distinct else (True, None)
        return entry if is_missing else value

    def is_new(entry: PageEntry) -> bool:
        value = value_of(entry)
        is_first = value not in seen
        seen.add(value)
        return is_first

    order = list(filter(is_new, position_of))
    keys = [
        [key for key in _order_keys(number, page, descending) if value_of(key[-1]) not in seen]
        for number, page in answered
    ]
    count, begin, waiting = len(order), 0, list[tuple[Any, ...]]()
    longest = max(map(len, keys), default=0)
    while (begin < longest or waiting) and len(order) - count < wanted:
        for of_page in keys:
            waiting += of_page[begin : begin + size]
        heapify(waiting)
        begin += size
        while waiting and len(order) - count < min(begin, wanted):
            entry = heappop(waiting)[-1]
            if is_new(entry):
                order.append(entry)
    return placed(order, [position_of.get(entry) for entry in order])


def _order_keys(
    partition: int, page: PartPage, descending: Sequence[bool]
) -> list[tuple[Any, ...]]:
    """Return what orders the documents of a page that are not pinned, which follow the pinned."""
    pins = len(page.pins)
    # Later documents are in the order of partitions: their ordinals count hidden ones.
    ordinals = np.minimum(page.ordinals, FIRST_LATER).tolist()
    columns = (page.typed_matches or repeat(False), (-page.scores).tolist(), ordinals)
    values: Iterable[Sequence[tuple[bool, Any]]] = page.keys
    if any(descending):
        values = (
            [
                (is_missing, _Descending(value) if falls else value)
                for (is_missing, value), falls in zip(of_document, descending, strict=True)
            ]
            for of_document in page.keys
        )
    ordered = [
        (True, *of_document, not leads, score, ordinal, PageEntry(partition, position))
        for position, (of_document, leads, score, ordinal) in enumerate(
            zip(values, *columns, strict=False)
        )
    ][pins:]
    if page.has_id_match and ordered:
        ordered[0] = (False, *ordered[0][1:])
    return ordered


@cmp_to_key
def _Descending(one: Any, other: Any) -> int:  # noqa: N802 - a class of values
    return 0 if one == other else -1 if one > other else 1


def by_score(pages: Sequence[PartPage]) -> npt.NDArray[np.int64]:
    """Return the order of the documents of pages, one after the other, by score and ordinal."""
    scores = np.concatenate([page.scores for page in pages])
    ordinals = np.concatenate([page.ordinals for page in pages])
    return np.lexsort((np.minimum(ordinals, FIRST_LATER), -scores))


def merged_facets(
    facets_of_pages: Sequence[Mapping[str, Facet]], limit: int, names: Iterable[str]
) -> dict[str, Facet]:
    """Return the facets of all partitions.

    facets_of_pages  of each partition, with the counts of all values
    limit  of the values of a facet
    """
    return {
        name: _merged_facet([facets[name] for facets in facets_of_pages], limit) for name in names
    }


def _merged_facet(facets: Sequence[Facet], limit: int) -> Facet:
    counts: dict[Any, int] = {}
    for facet in facets:
        for value, count in facet.values:
            counts[value] = counts.get(value, 0) + count
    kind = facets[0].type
    order = partial(comparable, kind)
    values = sorted(counts.items(), key=lambda item: (-item[1], order(item[0])))
    least = [facet.min for facet in facets if facet.min is not None]
    most = [facet.max for facet in facets if facet.max is not None]
    return Facet(
        type=kind,
        values=tuple(values[:limit]),
        other_count=len(values) - len(values[:limit]),
        missing=sum(facet.missing for facet in facets),
        min=min(least, default=None, key=order),
        max=max(most, default=None, key=order),
    )
