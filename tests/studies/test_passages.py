"""The studies of passages, on a small world."""

import json

import pytest

from klsa_search.collection import Document
from studies.effectiveness import passages
from studies.effectiveness.measuring import Bench
from tests.studies.conftest import toy_task

pytestmark = pytest.mark.slow


def test_gains_are_those_of_the_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(passages, "task_of", lambda name, _: toy_task(name, corpus=name))
    figures = passages.report(Bench(tmp_path), tmp_path, ["one"])
    means = figures["one"]["klsa"]
    assert figures["one"]["passages"] == 1  # so each is the whole document
    assert means["1"]["map"] == pytest.approx(means["0"]["map"], abs=0.05)
    json.dumps(figures)
    assert "| one |" in capsys.readouterr().out


def test_articles_contain_their_paragraphs():
    paragraphs = [
        Document(id="1", title="Oil", text="First."),
        Document(id="2", title="Gas", text="Other."),
        Document(id="3", title="Oil", text="Second."),
    ]
    made, spans = passages.articles(paragraphs)
    texts = {each.id: each.text for each in made}
    assert texts == {"Oil": "First.\n\nSecond.", "Gas": "Other."}
    for each in paragraphs:
        article, begin, end = spans[each.id]
        assert texts[article][begin:end] == each.text
