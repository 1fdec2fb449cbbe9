"""Weigh: terms → counts → features."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.features.counting import Block
    from klsa_search.features.counts import CountsBuilder, TermCounts
    from klsa_search.features.vocabulary import Vocabulary
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "counting": "Block",
            "counts": "CountsBuilder TermCounts",
            "vocabulary": "Vocabulary",
        },
    )

__all__ = [
    "Block",
    "CountsBuilder",
    "TermCounts",
    "Vocabulary",
]
