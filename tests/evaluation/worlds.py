"""A small index and collection whose measures can be worked out by hand."""

from dataclasses import dataclass, field

import numpy as np

from klsa_search.collection.model import Document, Judgement, Problems, Topic
from klsa_search.evaluation import candidates


@dataclass
class FakeIndex:
    """Documents d0, d1, ...; a query's text names its row of scores. Notes what it was asked."""

    rows: dict[str, list[float]]
    size: int
    asked: list[dict] = field(default_factory=list)

    def __len__(self):
        return self.size

    @property
    def max_doc(self):
        return self.size

    def ids(self):
        return [f"d{number}" for number in range(self.size)]

    def live_doc_ids(self):
        return np.arange(self.size)

    def rank_many(self, queries, k, *, threads=1, dimensions=None, **parameters):
        return [self._rank(query, k, parameters) for query in queries]

    def _rank(self, query, k, parameters):
        self.asked.append(parameters)
        scores = np.array(self.rows.get(query, [0.0] * self.size), dtype=np.float32)
        order = np.argsort(-scores, kind="stable")[: min(k, int((scores > 0).sum()))]
        return order, scores[order]


@dataclass
class FakeCollection:
    name: str = "tiny"
    asked: list[Topic] = field(default_factory=list)
    judged: list[Judgement] = field(default_factory=list)
    format: str = "fake"
    problems: Problems = field(default_factory=Problems)

    def documents(self):
        return iter(())

    def queries(self):
        return self.asked

    def judgements(self):
        return self.judged


def judgement(query, document, grade=1, gain=None):
    return Judgement(
        query_id=query,
        document_id=document,
        grade=grade,
        gain=max(grade, 0) if gain is None else gain,
    )


def tiny():
    """One query answered, one that finds nothing; of the first, d1 and d3 are relevant."""
    index = FakeIndex({"first": [3.0, 2.0, 0.0, 1.0]}, size=4)
    collection = FakeCollection(
        asked=[Topic(id="1", text="first"), Topic(id="2", text="unknown words")],
        judged=[judgement("1", "d1"), judgement("1", "d3"), judgement("2", "d0")],
    )
    return index, collection


def topical(topics=6, each=10, seed=0):
    """Documents of forty words of their topic; the title is a word that half of them use.

    The id begins with the letter of the topic.
    """
    rng = np.random.default_rng(seed)
    documents = []
    for topic in "abcdefgh"[:topics]:
        words = [f"{topic}{number}" for number in range(60)]
        for number in range(each):
            text = " ".join(rng.choice(words, 40, replace=False))
            title = str(rng.choice(words))
            documents.append(Document(id=f"{topic}-{number}", title=title, text=text))
    return documents


def few_candidates(monkeypatch):
    """Have `tune` try fewer settings than users get: the worlds are simple."""
    monkeypatch.setattr(candidates, "LENGTHS", ((0.9, 0.4),))
    monkeypatch.setattr(candidates, "TRIALS", 12)
    monkeypatch.setattr(candidates, "TRIALS_OF_LENGTHS", 2)
