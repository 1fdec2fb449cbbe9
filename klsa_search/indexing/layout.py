"""How the document expansion D of an index is kept."""

from __future__ import annotations

import math
from typing import Final, Literal

from klsa_search.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.expansion import packing
from klsa_search.expansion.cut import multiple_of_kernel

Layout = Literal["dense", "factored", "sparse"]

WHOLE: Final = 2**28
"""Bytes up to which a D that cannot be cut is kept whole: 8,192 documents."""

SMALL: Final = 2**13
"""Documents up to which a collection keeps its eigenvectors, however D is kept."""

_SECOND: Final = 10**8
"""Documents times the square of the eigenvectors that are found in about a second."""


def layout(documents: int, settings: Settings) -> Layout:
    """Choose for so many documents.

    sparse    where D is a multiple of K and the ranker needs no more
    dense     (N, N), else, while it is small
    factored  beyond: all spectral functions and rankers work; a query costs O(nnz + N · k)
    SettingsError if `sparse` is requested and cannot be used, and if `auto` would choose it but for
    the number of documents: other layouts are read-only, so the user has to choose them.
    """
    if settings.expansion == "sparse" and not _can_cut(settings):
        raise SettingsError(
            f"expansion = 'sparse': only a D that is a multiple of K can be sparse, and with "
            f"spectral = {settings.spectral!r} and head = {settings.head} it is not; use "
            "expansion = 'factored', or spectral = 'gvsm' and head = 0",
            field="expansion",
        )
    cut = settings.expansion == "sparse" or (
        settings.expansion == "auto"
        and _can_cut(settings)
        and not settings.ranker.startswith("lsi")
    )
    if cut and documents > packing.MAX_DOCUMENTS:
        raise SettingsError(
            f"expansion = {settings.expansion!r}: {documents:,} documents are more than the "
            f"{packing.MAX_DOCUMENTS:,} that a writable index can number; divide them among "
            "several indexes, or set expansion = 'factored', which makes the index read-only",
            field="expansion",
        )
    if cut:
        return "sparse"
    if settings.expansion != "auto":
        return settings.expansion
    return "dense" if 4 * documents**2 <= WHOLE else "factored"


def keeps_spectrum(documents: int, settings: Settings) -> bool:
    """Whether the eigenvectors are kept: where D is cut, in small collections only."""
    return layout(documents, settings) != "sparse" or documents <= SMALL


def solved_dimensions(documents: int, settings: Settings) -> int:
    """Eigenvectors that are computed: all that are asked for, or where D is cut fewer.

    There the latent space needs some, and a small collection keeps as many more as take about
    a second, so that function of the spectrum and dimensions can be chosen with a query.
    """
    if layout(documents, settings) != "sparse":
        return settings.dimensions
    latent = min(settings.dimensions, settings.latent_dimensions)
    if not keeps_spectrum(documents, settings):
        return latent
    return max(latent, min(settings.dimensions, math.isqrt(_SECOND // max(documents, 1))))


def _can_cut(settings: Settings) -> bool:
    return multiple_of_kernel(settings.spectral, settings.gamma, settings.head)
