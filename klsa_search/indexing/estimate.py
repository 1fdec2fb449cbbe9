"""What a build of a given shape takes: memory by phase, and disk by what is kept.

One place for both the check before a build and the plan that is shown. Figures follow from the
arrays that are alive together in a phase; only `_BASE`, `_WORKER` and the sizes of Python's own
objects are measured.
"""

from __future__ import annotations

from klsa_search import progress
from klsa_search.config import Settings
from klsa_search.expansion.cut import ENTRIES, card_width, term_width
from klsa_search.indexing.layout import layout
from klsa_search.indexing.shape import Shape

_BASE = 160 * 2**20  # an interpreter with NumPy, SciPy and compiled code
_WORKER = 60 * 2**20  # one that analyses
_TERM = 200  # bytes of a term in a dictionary: entry, string, number
_ID = 130  # bytes of an id in the set of those seen
_BLOCK = 60 * 2**20  # tokens being counted, for each thread
_WAITING = (4, 8, 4)  # bytes a token that waits in each spool: number, pair, count
_ENTRY = 8  # bytes of an entry of a sparse matrix


def spool_room(memory: int) -> int:
    """Bytes of what waits to be counted, above which it waits in a file, of each kind."""
    return memory // 32


def solved_dimensions(documents: int, settings: Settings) -> int:
    """Eigenvectors that are computed."""
    if layout(documents, settings) == "cut":
        return min(settings.dimensions, settings.latent_dimensions)
    return settings.dimensions


def memory_needed(
    shape: Shape, settings: Settings, *, memory: int, processes: int
) -> dict[str, int]:
    """Bytes at the peak of each phase, all processes together.

    memory  the budget: where it is smaller, more of what is counted waits in files
    """
    documents, terms = shape.documents, shape.terms
    ids = _ID * documents
    counted = _ENTRY * shape.features
    features = _ENTRY * shape.features
    spools = (size * shape.tokens for size in _WAITING)
    waiting = sum(size for size in spools if size <= spool_room(memory))
    dictionaries = (processes + 1) * _TERM * terms
    workers = processes * (_WORKER + _TERM * terms) if processes > 1 else 0
    vectors = 4 * documents * solved_dimensions(documents, settings)
    # Φ by documents and by features at once: products of the solver need both.
    kernel = _BASE + counted + 2 * features
    kept = layout(documents, settings)
    nearest = _ENTRY * (max(ENTRIES, settings.neighbours) + 1) * documents
    expansion = {"whole": 4 * documents * documents, "cut": nearest + features, "factors": 0}[kept]
    return {
        progress.DOCUMENTS: _BASE + ids + dictionaries + waiting + workers,
        progress.COUNTS: _BASE + ids + dictionaries + waiting + counted + processes * _BLOCK,
        progress.POSTINGS: _BASE + counted + 2 * features,
        progress.EIGENVECTORS: kernel + 3 * vectors,
        progress.NEIGHBOURS: kernel + vectors + nearest,
        progress.EXPANSION: kernel + vectors + expansion,
    }


def disk_needed(shape: Shape, settings: Settings) -> dict[str, int]:
    """Bytes of the index that results, by what they hold."""
    documents, terms = shape.documents, shape.terms
    k = min(settings.dimensions, max(documents - 1, 1))
    latent = min(settings.latent_dimensions, k)
    kept = layout(documents, settings)
    disk = {"documents": shape.stored, "vocabulary": 10 * terms}
    if kept == "cut":
        entries = max(ENTRIES, settings.neighbours)
        return disk | {
            "postings": 8 * shape.non_zeros,
            "expansion": (4 * entries + 8) * documents,
            "features": 4 * shape.features + 8 * documents,
            "latent": card_width(latent) * documents + term_width(latent) * terms,
        }
    return disk | {
        "postings": 12 * shape.non_zeros,
        "forward": _ENTRY * shape.non_zeros,
        "features": _ENTRY * shape.features,
        "eigenvectors": 2 * 4 * k * documents,
        "expansion": 4 * documents * documents if kept == "whole" else 0,
        "neighbours": _ENTRY * settings.neighbours * documents * bool(settings.coverage),
        "latent": 4 * latent * (documents + terms) * bool(settings.latent),
    }
