"""Read new documents: texts → numbers of terms, those of the epoch and those that come after.

A term that the epoch does not know gets the next number when it first appears, and its number is
its rank in the forward index too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from klsa_search.analysis import Analyzer
from klsa_search.analysis.numbering import LEFT_OUT, Numbering
from klsa_search.collection import Document
from klsa_search.delta.epoch import Epoch
from klsa_search.features.counting import Block
from klsa_search.growing import Growing


class Reader:
    """Numbers the terms of documents; remembers those that the epoch does not know.

    Common terms are numbered as all others.
    """

    def __init__(self, epoch: Epoch) -> None:
        self._known = epoch.vocabulary.numbers
        self._numbering = Numbering(Analyzer(epoch.settings))
        self._numbers = Growing(np.int32)  # among all terms, of each term of the numbering
        self._new: dict[str, int] = {}
        self._ranks = Growing(np.int32)
        self._ranks.extend(epoch.ranks)
        self._common = epoch.common
        self._content = Growing(np.bool_)
        self._content.extend(np.ones(len(epoch.ranks), np.bool_))
        common = [self._known[term] for term in epoch.common if term in self._known]
        self._content.held[common] = False

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """The rank of each term known so far in the forward index."""
        return self._ranks.held

    @property
    def content(self) -> npt.NDArray[np.bool_]:
        """Whether each term known so far is none of the common ones."""
        return self._content.held

    def learn(self, words: Sequence[str]) -> None:
        """Give terms that are new the next numbers."""
        first = len(self._ranks)
        numbers = range(first, first + len(words))
        self._new.update(zip(words, numbers, strict=True))
        self._ranks.extend(np.array(numbers, np.int32))
        self._content.extend(np.array([word not in self._common for word in words], np.bool_))

    def read(self, documents: Sequence[Document]) -> tuple[Block, list[str]]:
        """Return documents of two parts in numbers of terms, and the terms that are new."""
        texts = self._numbering.numbered(
            [part for document in documents for part in (document.title, document.text)]
        )
        words = [term for term in texts.terms if term not in self._known and term not in self._new]
        self.learn(words)
        met = [self._known[t] if t in self._known else self._new[t] for t in texts.terms]
        self._numbers.extend(np.array(met, np.int32))
        numbers = np.frombuffer(texts.numbers, np.int32)
        held = numbers >= 0
        numbered = np.full(len(numbers), LEFT_OUT, np.int32)
        numbered[held] = self._numbers.held[numbers[held]]
        lengths = np.frombuffer(texts.lengths, np.int32)
        return Block(numbered, lengths, np.full(len(documents), 2, np.int32)), words
