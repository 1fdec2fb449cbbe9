"""What a build of a given shape takes: memory by phase, and disk by what is kept.

Used by the check before a build and by `estimate`. Figures follow from the
arrays that are alive together in a phase, scratch memory of the libraries among them; only `BASE`,
`_WORKER` and the sizes of Python's own objects are measured.
"""

from __future__ import annotations

from klsa_search import progress
from klsa_search.config import Settings
from klsa_search.expansion.cut import ENTRIES, card_width, term_width
from klsa_search.features.counts import BLOCK
from klsa_search.indexing.layout import keeps_spectrum, layout, solved_dimensions
from klsa_search.indexing.shape import Shape
from klsa_search.kernel.document import EXACT
from klsa_search.kernel.postings import BLOCK_BITS, DEPTHS, ONE_BLOCK
from klsa_search.spectrum import krylov
from klsa_search.spectrum.slices import WIDTH

BASE = 190 * 2**20
"""An interpreter with NumPy, SciPy and compiled code, 100 MiB of it in files."""

_WORKER = 35 * 2**20  # one that analyses
_TERM = 200  # bytes of a term in a dictionary: entry, string, number
_TEXT = 300  # bytes of a text of a keyword field: string, entry, and again while it is sorted
_ID = 130  # bytes of an id in the set of those seen
_COUNTED = 28  # bytes of a word being counted: number, column, count, pair and how often
_ENTRY = 8  # bytes of an entry of a sparse matrix: number and column
_WEIGHTED = 12  # the same where the number is float64
# Of an entry while counts become weights: the matrix in float64, and terms of a sum.
_SATURATED = 44
_STACKED = 36  # of an entry while two matrices are put side by side: both, end to end, interleaved

_PAIR = 3  # bytes of a pair as the epoch keeps it
_RUNS = 8  # of a term, on average, where there are many blocks
_GRAPH = 2**22  # entries of K that the graph of neighbours looks at, at a time


def spool_room(memory: int) -> int:
    """Bytes of what waits to be counted, above which it waits in a file, of each kind."""
    return memory // 32


def memory_needed(
    shape: Shape, settings: Settings, *, memory: int, processes: int
) -> dict[str, int]:
    """Bytes at the peak of each phase, all processes together.

    memory  the budget: where it is smaller, more of what is counted waits in files
    """
    documents, terms, tokens = shape.documents, shape.terms, shape.tokens

    def waiting(*sizes: int) -> int:
        return sum(size for size in sizes if size <= spool_room(memory))

    # Python's objects stay to the end: between those that are let go lie the strings of terms.
    always = BASE + _ID * documents + (processes + 1) * _TERM * terms
    fields = _TEXT * shape.texts
    workers = processes * (_WORKER + _TERM * terms) if processes > 1 else 0
    words = waiting(4 * shape.words)
    singles = waiting(4 * shape.non_zeros, 4 * shape.non_zeros)
    doubles = waiting(8 * tokens, 4 * tokens)  # a pair begins at most at each token
    numbered = _ENTRY * shape.pair_non_zeros
    counting = words + max(singles, _ENTRY * shape.non_zeros + numbered) + doubles
    under_way = min(shape.words, (processes + 1) * BLOCK)
    always_counted = always + _ENTRY * (shape.features + shape.pairs)  # entries, keys of pairs
    weighed = shape.features if settings.pairs else shape.non_zeros
    stacked = max(
        _WEIGHTED * shape.non_zeros + _SATURATED * shape.pair_non_zeros,
        _STACKED * shape.features,
    )
    precision = 8 if documents <= EXACT else 4
    kernel = always_counted + (4 + precision) * weighed + 8 * (4 * documents + terms + shape.pairs)
    vectors = precision * documents * solved_dimensions(documents, settings)
    return {
        progress.DOCUMENTS: always + words + workers + fields + waiting(shape.columns),
        progress.COUNTS: always + counting + _COUNTED * under_way,
        progress.POSTINGS: always_counted
        + _ENTRY * shape.non_zeros * (settings.common_weight < 1)  # the content terms once more
        + max(_SATURATED * shape.non_zeros, stacked if settings.pairs else 0),
        progress.EIGENVECTORS: kernel + _solver(shape, settings, processes),
    } | (
        _cut(shape, settings, processes, kernel + vectors, weighed)
        if layout(documents, settings) == "sparse"
        else _uncut(shape, settings, kernel + vectors)
    )


def _solver(shape: Shape, settings: Settings, threads: int) -> int:
    """Bytes of the solver besides the kernel."""
    wanted = solved_dimensions(shape.documents, settings) + 1
    documents, features = shape.documents, shape.terms + shape.pairs
    if documents <= EXACT:
        lanczos = 2 * min(documents, features) + 2 * documents  # on the smaller side
        residual = features + 3 * documents  # all eigenvectors times K
        return 8 * wanted * max(lanczos, residual)
    columns = krylov.room(wanted) + 2 * WIDTH + 2 * wanted + threads + 1
    return 4 * (columns * documents + WIDTH * features)


def _cut(shape: Shape, settings: Settings, threads: int, held: int, weighed: int) -> dict[str, int]:
    """Of the phases that make a cut D; `held` is the kernel and its eigenvectors."""
    documents, features = shape.documents, shape.terms + shape.pairs
    m = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    held += 4 * m * (documents + shape.terms)
    rows = _ENTRY * (entries + 1) * documents
    by_feature, in_float32 = (12, 4) if documents <= EXACT else (8, 0)
    # All postings first, with what is kept of each feature; then rows fill up.
    postings = (_ENTRY + in_float32) * weighed
    scratch = threads * 4 * (documents + features)
    kept = sum(_cut_disk(shape, settings).values())
    return {
        progress.NEIGHBOURS: held + postings + max(by_feature * weighed, rows + scratch),
        progress.EXPANSION: held + rows + kept + 4 * weighed,
    }


def _uncut(shape: Shape, settings: Settings, held: int) -> dict[str, int]:
    """Of the phases that make D whole or in its factors."""
    whole = layout(shape.documents, settings) == "dense"
    lsi = _WEIGHTED * shape.non_zeros + 8 * settings.dimensions * shape.documents
    expansion = 4 * shape.documents**2 if whole else 0
    block = min(shape.documents**2, max(_GRAPH, shape.documents)) if settings.coverage else 0
    return {progress.EXPANSION: held + lsi + expansion + 40 * block}


def disk_needed(shape: Shape, settings: Settings) -> dict[str, int]:
    """Bytes of the index that results, by what they hold."""
    documents, terms = shape.documents, shape.terms
    k = min(settings.dimensions, max(documents - 1, 1))
    latent = min(settings.latent_dimensions, k)
    kept = layout(documents, settings)
    of_terms = 8 + 8 + 8 + 2 * len(DEPTHS)  # starts, those of runs, occurrences, best saturations
    blocks = -(-documents >> BLOCK_BITS) if documents > ONE_BLOCK else 1
    runs = min(shape.non_zeros, terms * min(blocks, _RUNS))
    disk = {
        "documents": shape.stored,
        "fields": shape.columns,
        "vocabulary": (10 + of_terms) * terms,
        "lengths": 4 * documents,
        "runs": 6 * runs,
    }
    if kept == "sparse":
        return disk | {"postings": 4 * shape.non_zeros} | _cut_disk(shape, settings)
    return disk | {
        "postings": 8 * shape.non_zeros,
        "features": _ENTRY * shape.features,
        "eigenvectors": 2 * 4 * k * documents,
        "expansion": 4 * documents * documents if kept == "dense" else 0,
        "neighbours": _ENTRY * settings.neighbours * documents * bool(settings.coverage),
        "latent": 4 * latent * (documents + terms) * bool(settings.latent),
    }


def _cut_disk(shape: Shape, settings: Settings) -> dict[str, int]:
    """Bytes of a cut D."""
    latent = min(settings.dimensions, settings.latent_dimensions)
    entries = max(ENTRIES, settings.neighbours)
    solved = min(solved_dimensions(shape.documents, settings), max(shape.documents - 1, 1))
    return {
        "eigenvectors": 4 * solved * shape.documents * keeps_spectrum(shape.documents, settings),
        "expansion": (4 * entries + 8) * shape.documents,
        "features": 4 * (shape.features + shape.terms + shape.pairs) + 8 * shape.documents,
        "latent": card_width(latent) * shape.documents + term_width(latent) * shape.terms,
        "epoch": (shape.terms + _PAIR * shape.pairs) * bool(settings.pairs),
    }
