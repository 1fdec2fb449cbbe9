"""Words of synonyms and rules, one of which a misspelt word may be although no document has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.search.query.similar_terms import cost, first_letters

SHORTEST: Final = 4
"""Letters of a misspelt word that may be one of them, at least."""

Terms = tuple[str, ...]


class ConfiguredWord(NamedTuple):
    """A word of synonyms or rules.

    folded   without case and accents
    written  as the user gave it
    meant    terms of each of the texts that are searched as well; none for a word of rules alone
    """

    folded: str
    written: str
    meant: tuple[Terms, ...]


class ConfiguredWords:
    """The words of the synonyms and rules of an index; immutable.

    synonyms  what is searched as well, by words or sequences of words
    queries   of rules
    Cost: the analysis of each.
    """

    def __init__(
        self, synonyms: Mapping[str, Iterable[str]], queries: Iterable[str], analyzer: Analyzer
    ) -> None:
        words: dict[str, ConfiguredWord] = {}
        for text, meant in (*synonyms.items(), *((query, ()) for query in queries)):
            terms = tuple(filter(None, (tuple(analyzer.terms(one)) for one in meant)))
            for word in analyzer.map_words(text, str, str):
                folded = analyzer.folded(word)
                if folded.isalpha():
                    before = words.get(folded, ConfiguredWord(folded, word, ()))
                    words[folded] = before._replace(meant=before.meant + terms)
        self._with_first = defaultdict[str, list[ConfiguredWord]](list)
        for configured in words.values():
            self._with_first[configured.folded[0]].append(configured)

    def near(
        self, word: str, edits: int, *, with_synonyms: bool
    ) -> Iterator[tuple[float, ConfiguredWord]]:
        """Yield the other words within some edits of a folded word, with their costs.

        with_synonyms  whether those of synonyms count
        Cost: 1 µs for each word with the same first letter.
        """
        if len(word) < SHORTEST:
            return
        for first in {beginning[0] for beginning in first_letters(word)}:
            for configured in self._with_first.get(first, ()):
                if configured.folded == word:
                    continue  # a rule for a misspelt word does not correct it
                cost_ = cost(word, configured.folded, edits)
                if cost_ < np.inf and (with_synonyms or not configured.meant):
                    yield cost_, configured
