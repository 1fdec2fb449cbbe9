"""The studies of passages, on a small world."""

import json

import numpy as np
import pytest

from klsa_search.collection import Document
from klsa_search.storage.passages import PassageId
from studies.effectiveness import evidence, manual_questions, passages
from studies.effectiveness.measuring import Bench
from tests.studies.conftest import toy_task

pytestmark = pytest.mark.slow


def test_gains_are_those_of_the_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(passages, "task_of", lambda name, _: toy_task(name, corpus=name))
    monkeypatch.setattr(passages, "SIZES", (300,))
    monkeypatch.setattr(passages, "WEIGHTS", (1.0,))
    found = passages.report(Bench(tmp_path), tmp_path, ["one", "other"])
    means = found["one"]["300"]["klsa"]
    assert found["one"]["300"]["passages"] == 1  # so each is the whole document
    assert means["1"]["map"] == pytest.approx(means["0"]["map"], abs=0.05)
    assert set(found["chosen"]) == {"one", "other", "none"}
    json.dumps(found)
    assert "| none |" in capsys.readouterr().out


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


def test_chunks_contain_all_words_once():
    text = " ".join(f"w{n}" for n in range(650))
    chunks = evidence.fixed_chunks(Document(id="d", title="T", text=text))
    assert [len(each.text.split()) for each in chunks] == [300, 300, 50]
    assert "".join(each.text for each in chunks) == text
    for each in chunks:
        _, begin, end = PassageId.of(each.id)
        assert text[begin:end] == each.text


def test_recall_by_hand():
    question = evidence.Question("q", [[PassageId("d", 0, 10), PassageId("e", 5, 9)],
                                       [PassageId("d", 90, 100)]])  # fmt: skip
    assert evidence.recall(question, [PassageId("d", 0, 4)]) == 0
    assert evidence.recall(question, [PassageId("d", 0, 3), PassageId("d", 3, 5)]) == 0.5
    assert evidence.recall(question, [PassageId("e", 0, 7), PassageId("d", 50, 200)]) == 1


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("python-reference", manual_questions.REFERENCE),
        ("python-library", manual_questions.LIBRARY),
    ],
)
def test_answers_are_in_the_manuals(name, asked):
    source = evidence.SOURCES[name](None)
    texts = {each.id: each.text for each in source.documents}
    assert len({text for text, _ in asked}) == len(asked)
    assert len(source.questions) > 0.7 * len(asked)  # others are of another version of Python
    words_of = dict(asked)
    for question in source.questions:
        for document_id, begin, end in question.answers[0]:
            assert texts[document_id][begin:end].split() == words_of[question.text].split()
            assert end - begin < 200


def test_evidence_within_a_budget(tmp_path, monkeypatch):
    documents = [
        Document(id=f"d{n}", title=f"Part {n}", text=f"{word} leaks. " * 3 + "Oil. " * 20)
        for n, word in enumerate(("pump", "valve", "seal", "hose"))
    ]
    questions = [evidence.Question("valve", [evidence.spans_of("valve leaks.", documents)])]
    source = evidence.Source(documents, questions)
    monkeypatch.setattr(evidence, "SOURCES", {"toy": lambda _: source})
    found = evidence.report(Bench(tmp_path), tmp_path)["toy"]
    assert set(found) == {f"{t}, {r}" for t in ("chunks", "passages") for r in ("bm25", "klsa")}
    assert all(np.mean(recalls) == 1 for recalls in found.values())
