"""What a build of a given shape takes: memory by phase, and disk by what is kept.

One place for both the check before a build and the plan that is shown. Figures follow from the
arrays that are alive together in a phase; only `_BASE`, `_WORKER` and the sizes of Python's own
objects are measured.
"""

from __future__ import annotations

from typing import Final

from klsa_search import progress
from klsa_search.config import Settings
from klsa_search.indexing.shape import Shape

ROW_ENTRIES: Final = 100
"""Entries kept of a row of D where it is not stored whole."""
LATENT: Final = 50
"""Eigenvectors computed where D is not stored whole."""

_BASE = 160 * 2**20  # an interpreter with NumPy, SciPy and compiled code
_WORKER = 60 * 2**20  # one that analyses
_TERM = 200  # bytes of a term in a dictionary: entry, string, number
_ID = 130  # bytes of an id in the set of those seen
_BLOCK = 60 * 2**20  # tokens being counted, for each thread
_WAITING = (4, 8, 4)  # bytes a token that waits in each spool: number, pair, count
_ENTRY = 8  # bytes of an entry of a sparse matrix
_EDGES = 2 * _ENTRY  # of a graph in which either end counts, an entry a neighbour and side


def spool_room(memory: int) -> int:
    """Bytes of what waits to be counted, above which it waits in a file, of each kind."""
    return memory // 32


def stored_whole(documents: int, settings: Settings) -> bool:
    """Whether D is kept as an (N, N) array."""
    return 4 * documents**2 <= settings.expansion_budget


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
    vectors = 4 * documents * (settings.dimensions if stored_whole(documents, settings) else LATENT)
    # Φ by documents and by features at once: products of the solver need both.
    kernel = _BASE + counted + 2 * features
    nearest = 8 * ROW_ENTRIES * documents + _EDGES * settings.neighbours * documents
    expansion = 4 * documents * documents if stored_whole(documents, settings) else nearest
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
    disk = {"documents": shape.stored, "vocabulary": 10 * terms}
    if stored_whole(documents, settings):
        return disk | {
            "postings": 12 * shape.non_zeros,
            "forward": _ENTRY * shape.non_zeros,
            "features": _ENTRY * shape.features,
            "eigenvectors": 2 * 4 * k * documents,
            "expansion": 4 * documents * documents,
            "neighbours": _EDGES * settings.neighbours * documents * bool(settings.coverage),
            "latent": 4 * latent * (documents + terms) * bool(settings.latent),
        }
    return disk | {
        "postings": 8 * shape.non_zeros,
        "expansion": 5 * min(ROW_ENTRIES, documents) * documents,
        "neighbours": 5 * 3 * settings.neighbours * documents // 2 * bool(settings.coverage),
        "latent": (latent * documents + 4 * latent * terms) * bool(settings.latent),
    }
