"""An embedder for tests: words of one meaning have one direction."""

import numpy as np

MEANINGS = (("car", "automobile"), ("road", "street"), ("wet", "rain"), ("pump", "valve"))


class Meanings:
    """Counts the words of each meaning; notes what it is called with.

    fault  replaces the vectors, or raises
    """

    def __init__(self, fingerprint="meanings-1", fault=None, dimension=5):
        self.name, self.fingerprint, self.dimension = "meanings", fingerprint, dimension
        self.fault = fault
        self.calls = []

    @property
    def texts(self):
        """The documents it got."""
        return [text for texts, kind in self.calls if kind == "document" for text in texts]

    def embed(self, texts, kind):
        self.calls.append((list(texts), kind))
        vectors = np.full((len(texts), self.dimension), 0.1)
        for row, text in zip(vectors, texts, strict=True):
            words = text.lower().replace(".", " ").split()
            row[: len(MEANINGS)] += [sum(map(words.count, words_)) for words_ in MEANINGS]
        return vectors if self.fault is None else self.fault(vectors)


def meanings(texts, kind):
    """As a function, for `python:tests.support.embedders:meanings`."""
    return Meanings().embed(texts, kind)


meanings.fingerprint = "meanings-1"


def other(texts, kind):
    """Another model."""
    return Meanings(dimension=7).embed(texts, kind)


def failing(texts, kind):
    """A model that cannot be reached."""
    raise ConnectionError("is down")
