"""How the document expansion D of an index is kept."""

from __future__ import annotations

from typing import Final, Literal

from klsa_search.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.expansion.cut import multiple_of_kernel
from klsa_search.expansion.packing import NUMBERS

Layout = Literal["whole", "factors", "cut"]

WHOLE: Final = 2**28
"""Bytes up to which D is kept whole: 8,192 documents."""


def layout(documents: int, settings: Settings) -> Layout:
    """Choose for so many documents.

    whole    (N, N), while it is small
    cut      beyond, where D is a multiple of K and the ranker needs no more
    factors  else: every spectral function and ranker is at hand, and a query costs O(nnz + N · k)
    SettingsError where `cut` is asked for and cannot be.
    """
    if settings.expansion != "auto":
        if settings.expansion == "cut":
            _refuse_to_cut(documents, settings)
        return settings.expansion
    if 4 * documents**2 <= WHOLE:
        return "whole"
    can = multiple_of_kernel(settings.spectral, settings.gamma, settings.head)
    enough = documents <= NUMBERS and not settings.ranker.startswith("lsi")
    return "cut" if can and enough else "factors"


def _refuse_to_cut(documents: int, settings: Settings) -> None:
    if not multiple_of_kernel(settings.spectral, settings.gamma, settings.head):
        raise SettingsError(
            f"expansion = 'cut': only a D that is a multiple of K can be cut, and with spectral = "
            f"{settings.spectral!r} and head = {settings.head} it is none; take expansion = "
            "'factors', or spectral = 'gvsm' and head = 0",
            field="expansion",
        )
    if documents > NUMBERS:
        raise SettingsError(
            f"expansion = 'cut': {documents} documents are more than the {NUMBERS} it can number; "
            "divide them among several indexes",
            field="expansion",
        )
