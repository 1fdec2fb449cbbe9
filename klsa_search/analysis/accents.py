"""Accents, by language: people leave out those that only mark a letter, and expect to find.

Where a language counts a marked letter among those of its alphabet (Swedish å ä ö, Spanish ñ,
Polish ł ż), it is another letter and stays; what is one is taken from the collations of CLDR.
Folding comes before stemming, so that a word has one stem however it is typed; stemmers that know
endings by their accents get these back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from klsa_search.analysis.normalform import fold_accents


class Accents(NamedTuple):
    """Accents that go.

    kept     marked letters that are letters of their own
    endings  of words as they are without accents, and with: those that the language's stemmer has
             to see, the longest first
    """

    kept: str = ""
    endings: Mapping[str, str] = MappingProxyType({})

    def folded(self, word: str) -> str:
        """Take them off a word, which is in NFC.

        >>> Accents("ñ").folded("españolísimo")
        'españolisimo'
        """
        if not self.kept:
            return fold_accents(word)
        return "".join(
            part if part in self.kept else fold_accents(part)
            for part in re.split(f"([{self.kept}])", word)
        )

    def restored(self, word: str) -> str:
        """Give a word without accents those of its ending back.

        >>> ACCENTS["french"].restored("utilisees")
        'utilisées'
        """
        for bare, written in self.endings.items():
            if len(word) > len(bare) + 1 and word.endswith(bare):
                return word.removesuffix(bare) + written
        return word


_FRENCH: Final = {
    "erent": "èrent",
    "eres": "ères",
    "ites": "ités",
    "ees": "ées",
    "ere": "ère",
    "ite": "ité",
    "ee": "ée",
}
_PORTUGUESE: Final = {"coes": "ções", "cao": "ção", "oes": "ões", "aos": "ãos", "ao": "ão"}
_CATALAN: Final = {"cio": "ció", "sio": "sió"}

ACCENTS: Final[Mapping[str, Accents]] = MappingProxyType(
    {
        **dict.fromkeys(
            ["afrikaans", "dutch", "english", "german", "greek", "italian", "latin"], Accents()
        ),
        "catalan": Accents(endings=MappingProxyType(_CATALAN)),
        "french": Accents(endings=MappingProxyType(_FRENCH)),
        "galician": Accents("ñ"),
        "portuguese": Accents(endings=MappingProxyType(_PORTUGUESE)),
        "spanish": Accents("ñ"),
    }
)
"""Languages whose accents go; those of others stay."""
