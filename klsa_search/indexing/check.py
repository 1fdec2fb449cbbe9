"""Check: refuse a build in the wrong place, or beyond its memory, before the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from klsa_search.collection import Collection
from klsa_search.collection.model import Placed
from klsa_search.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.features.counts import TermCounts
from klsa_search.indexing.extent import Extent
from klsa_search.indexing.shape import Shape
from klsa_search.indexing.sizes import memory_needed
from klsa_search.indexing.survey import read_shape, survey
from klsa_search.processors import processors
from klsa_search.store.manifest import FieldsEntry

_SAMPLE = 5_000  # documents
_TIMES = 16  # bytes of memory that a byte of the source may take


def refuse_overlap(path: Path, collection: Collection) -> None:
    """SettingsError where the folder of an index, or its home, and the source are in each other.

    The index would be read as part of the source. A file may lie in the home.
    """
    root = collection.root if isinstance(collection, Placed) else None
    if root is None:
        return
    source, index, home = root.resolve(), path.resolve(), path.parent.resolve()
    for place in (home, index):
        if source == place:
            fact = f"{place} is the source itself"
        elif source in place.parents and source.is_dir():
            fact = f"{place} lies within the source {root}"
        elif place in source.parents and (source.is_dir() or place == index):
            fact = f"the source {root} lies within {place}"
        else:
            continue
        raise SettingsError(
            f"home = `{path.parent}`: {fact}; choose an index directory apart from "
            "the source (--home, in Python home=)",
            field="home",
        )


Needed = Callable[[Shape], Mapping[str, int]]
"""From the shape of a collection to the bytes that the process at work has in each phase."""


def refuse_large_source(
    collection: Collection, settings: Settings, budget: int, needed: Needed | None = None
) -> None:
    """SettingsError where the first documents say that all of them will not fit the budget.

    needed  of whom the budget is, if not of a build on one machine
    Nothing is read of a source too small to be in doubt, or of one without files, which can
    perhaps be read only once.
    """
    if Extent(collection).bytes * _TIMES > budget:
        shape = survey(collection, settings, most=_SAMPLE).shape
        _refuse(shape, (needed or _needed(settings, budget))(shape), budget, "about ")


def refuse_beyond_budget(
    counts: TermCounts, fields: FieldsEntry, generation: Path, settings: Settings, budget: int
) -> None:
    """SettingsError where the collection, now that it is counted, does not fit the budget."""
    shape = read_shape(counts, fields, generation)
    _refuse(shape, _needed(settings, budget)(shape), budget, "")


def _needed(settings: Settings, budget: int) -> Needed:
    return partial(memory_needed, settings=settings, memory=budget, processes=processors())


def _refuse(shape: Shape, needed: Mapping[str, int], budget: int, about: str) -> None:
    phase, peak = max(needed.items(), key=lambda item: item[1])
    if peak > budget:
        raise SettingsError(
            f"memory = {_said(budget)} is not enough: {about}{shape.documents:,} "
            f"documents need {_said(peak)}, most of it for the {phase}; allow "
            "more, or build from fewer documents",
            field="memory",
        )


def _said(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
