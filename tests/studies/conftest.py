"""A world of four topics, whose words determine the relevant documents."""

import pytest

from klsa_search.collection import Document, Judgement, Topic
from studies.effectiveness.measuring import Task
from tests.support.worlds import topic_documents

NAMES = "abcd"


def toy_task(name="toy", **more):
    """A query a topic, three of its words; the documents of the topic are relevant."""
    texts = topic_documents()
    each = len(texts) // len(NAMES)
    return Task(
        name,
        [Document(id=str(n), title=text[:8], text=text) for n, text in enumerate(texts)],
        [Topic(id=topic, text=f"{topic}1 {topic}2 x1") for topic in NAMES],
        [
            Judgement(query_id=topic, document_id=str(each * row + n), grade=1, gain=1)
            for row, topic in enumerate(NAMES)
            for n in range(each)
        ],
        **more,
    )


@pytest.fixture
def toy(monkeypatch):
    """The same world whatever collection a study asks for."""
    monkeypatch.setattr(Task, "of_target", lambda name, _: toy_task(name, corpus="toy"))
