"""Words that documents contain, but so seldom that a query probably means another one."""

from __future__ import annotations

from typing import Final

from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.query.corrections import SURE_LETTERS, Correction, Corrector
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.pieces import PieceCache

MAX_RARE_DOCUMENTS: Final = 3
"""Documents that contain a word of which another writing is searched as well, at most."""

MIN_FREQUENCY_RATIO: Final = 100
"""Factor by which that writing is more frequent, at least."""


class DoubtfulWords:
    """Finds what doubtful words of queries to one snapshot are meant to be; thread-safe."""

    def __init__(self, pieces: PieceCache, corrector: Corrector) -> None:
        self._corrector, self._analyzer = corrector, pieces.analyzer
        self._kernel = pieces.snapshot.query_kernel

    def more_common(
        self, word: Word, evidence: Evidence, context: tuple[int, ...]
    ) -> Correction | None:
        """Return a far more frequent word that a rare word is probably meant to be, or None."""
        if not self.is_doubtful(word):
            return None
        folded = self._analyzer.folded(word.text)
        least = MIN_FREQUENCY_RATIO * int(self._kernel.frequencies[word.number])
        return self._corrector.frequent(folded, least, evidence, context)

    def is_doubtful(self, word: Word) -> bool:
        """Return whether a word is so rare beside a similar one that it may be misspelt."""
        kernel = self._kernel
        if word.number < 0 or not self._corrector.is_large or not word.text.isalpha():
            return False
        frequency = int(kernel.frequencies[word.number])
        folded = self._analyzer.folded(word.text)
        if frequency > MAX_RARE_DOCUMENTS or len(folded) < SURE_LETTERS:
            return False
        if any(map(str.isupper, word.text[1:])):
            return False
        terms, distances = self._corrector.similar.near(folded, 1)
        near = terms[distances <= 1]
        return bool((kernel.frequencies[near] >= MIN_FREQUENCY_RATIO * frequency).any())
