"""The studies of docs/explanations/effectiveness.md, on a small world."""

import json

import numpy as np
import pytest

from klsa_search.collection import Document
from klsa_search.search.ranking.vector_ranking import NEAREST, WEIGHT
from studies.effectiveness import (
    folded_in,
    kinds,
    languages,
    passages,
    quality,
    reuters,
    similar,
    spelling,
    unseen,
    vectors,
)
from studies.effectiveness.derived_tasks import (
    by_document,
    links_of,
    sentence_to_rest,
    title_to_text,
)
from studies.effectiveness.measuring import Bench, compared
from tests.studies.conftest import NAMES, toy_task

pytestmark = pytest.mark.slow


def test_the_bench_measures_each_judged_query(tmp_path):
    bench = Bench(tmp_path)
    precisions = bench.precisions(toy_task(), {"ranker": "bm25"})
    assert len(precisions) == len(NAMES)
    assert min(precisions) > 0.2
    # A setting of the search needs no other index; one of the build does.
    held = bench.index(toy_task(), {})
    bench.precisions(toy_task(), {"alpha": 0.5})
    assert bench.index(toy_task(), {}) is held
    assert bench.index(toy_task(), {"k1": 2.0}) is not held


def test_a_document_that_made_the_query_is_not_ranked_for_it(tmp_path):
    bench, own = Bench(tmp_path), {"a": "0"}
    free, without = (bench.precisions(toy_task(left_out=out))[0] for out in ({}, own))
    assert without < free  # it is relevant, and no longer found


def test_change_against_the_base_by_hand():
    found = compared([0.5, 0.2, 0.9], [0.5, 0.4, 0.3])
    assert found == pytest.approx({"map": 1.6 / 3, "gain": 1 / 3, "hurt": 1 / 3, "tenth": -0.2})


def test_folded_in(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(folded_in, "FOUR", ("cran",))
    found = folded_in.report(Bench(tmp_path), tmp_path)["cran"]
    assert len({len(precisions) for precisions in found.values()}) == 1
    assert found["added_bm25"] == found["bm25"]
    assert min(found["added"]) > 0


def test_quality(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(quality, "FOUR", ("cran", "med"))
    monkeypatch.setattr(quality, "rankdata", lambda values: np.argsort(np.argsort(values)) + 1)
    found = quality.report(Bench(tmp_path), tmp_path)
    assert set(found) == {"cran", "med"}
    for of_task in found.values():
        assert 0 <= of_task["own_refused"] <= 1
        assert sum(of_task["hits"]) > 0


def test_spelling(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spelling, "task_of", lambda name, _: toy_task())
    found = spelling.report(Bench(tmp_path), tmp_path, ["cran"])["cran"]
    assert found["off"] == found["auto"]
    assert "put right" in capsys.readouterr().out


def test_kinds(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kinds, "task_of", lambda name, _: toy_task())
    found = kinds.report(Bench(tmp_path), tmp_path, ["cran", "npl"])
    measures = found["npl"]["measures"]
    earlier = kinds.EARLIER_BM25["npl"]
    assert measures["over_earlier"] == pytest.approx(measures["map"] / earlier - 1)
    printed = capsys.readouterr().out
    assert all(f"| mean of {group} |" in printed for group in ("the four", "the others", "all"))
    with pytest.raises(SystemExit, match="no task nothing; the tasks are: cran"):
        kinds.report(Bench(tmp_path), tmp_path, ["nothing"])


def test_the_interval_over_collections_holds_their_mean():
    gains = np.array([0.1, 0.2, 0.3, 0.0])
    low, high = kinds.interval(gains)
    assert 0.0 <= low < gains.mean() < high <= 0.3
    assert kinds.interval(np.full(3, 0.25)) == (0.25, 0.25)


def test_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kinds, "KINDS", ("cran", "npl"))
    monkeypatch.setattr(kinds, "FOUR", ("cran",))
    monkeypatch.setattr(kinds, "task_of", lambda name, _: toy_task())
    found = kinds.report_steps(Bench(tmp_path), tmp_path)
    assert list(found) == list(kinds.STEPS)
    assert found["default"]["npl"]["gain"] >= 0
    assert capsys.readouterr().out.count("\n|") == len(kinds.STEPS) + 1


def test_unseen(tmp_path, monkeypatch):
    monkeypatch.setattr(unseen, "tasks_of", lambda _: {"toy": toy_task})
    found = unseen.report(Bench(tmp_path), tmp_path)["toy"]
    assert found["documents"] == 48
    assert set(found["precisions"]) == {"bm25", "rm3", "default"}
    with pytest.raises(SystemExit, match="no task nothing; the tasks are: toy"):
        unseen.report(Bench(tmp_path), tmp_path, ["nothing"])


def test_known_items_lose_what_asks_for_them():
    text = ". ".join(f"this is sentence number {n} of a longer text" for n in range(5))
    documents = [toy_task().documents[0].__class__(id="1", title="a title of words", text=text)]
    titles, sentences = title_to_text("t", documents), sentence_to_rest("s", documents)
    assert [query.text for query in titles.queries] == ["a title of words"]
    assert titles.documents[0].title == ""
    assert sentences.queries[0].text not in sentences.documents[0].text


def test_a_document_used_as_query_is_not_searched():
    task = by_document(toy_task())
    first = [d for d in toy_task().documents if d.id in ("0", "12", "24", "36")]
    assert [query.text for query in task.queries] == [f"{d.title}\n{d.text}" for d in first]
    left = {document.id for document in task.documents}
    assert left == {judgement.document_id for judgement in task.judgements}
    assert len(left) == 44


def test_links_of_citations(tmp_path):
    (tmp_path / "all").write_text(".I 1\n.T\nno 2 5 1\n.X\n2\t5\t1\n3\t4\t1\n.I 2\n.X\n1\t5\t2\n")
    assert links_of(tmp_path / "all") == {"1": {"2", "3"}, "2": {"1"}}


def test_tasks_of_reuters():
    stories = [
        reuters.Labelled(document, "train" if n % 2 else "test", ("grain",))
        for n, document in enumerate(toy_task().documents)
    ]
    task = reuters.topics_of(stories)
    assert [query.text for query in task.queries] == ["grain"]
    assert len(task.judgements) == 48


def test_languages(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(languages, "task_of", lambda name, _: toy_task(name))
    found = languages.report(Bench(tmp_path), tmp_path, ["one+other"])
    assert {key: entry["language"] for key, entry in found.items()} == {
        "one+other one": "auto",
        "one+other other": "auto",
    }
    alone, first, english, each = found["one+other one"]["map"]
    assert first == english == each <= alone
    assert "each its own" in capsys.readouterr().out


def test_vectors_of_relevance_find_what_is_relevant(tmp_path, monkeypatch, capsys):
    """Vectors say which queries a document is relevant to."""
    task = toy_task("one", corpus="one")
    queries = sorted({each.query_id for each in task.judgements})
    docs = np.full((len(task.documents), len(queries) + 1), 0.01, np.float32)
    places = {document.id: at for at, document in enumerate(task.documents)}
    for each in task.judgements:
        if each.grade > 0:
            docs[places[each.document_id], queries.index(each.query_id)] = 1
    docs[:, -1] = ~(docs == 1).any(axis=1)
    np.savez(tmp_path / "one.npz", docs=docs, queries=docs[:0])
    monkeypatch.setenv("KLSA_VECTORS", str(tmp_path))
    monkeypatch.delenv("KLSA_MODEL", raising=False)
    monkeypatch.setattr(similar, "task_of", lambda name, _: toy_task(name, corpus=name))
    found = similar.report(Bench(tmp_path / "home"), tmp_path, ["one", "two"])
    assert np.mean(found["one"]["vectors:model"]) == pytest.approx(1)
    assert all(0 <= share <= 1 for each in found["one"].values() for share in each)
    json.dumps(found)
    shown = capsys.readouterr().out
    assert "| one |" in shown
    assert "two is left out" in shown


def test_vectors_of_another_language_change_little(tmp_path, monkeypatch, capsys):
    """Random vectors of queries let documents stand out by chance alone."""
    task = toy_task("one", corpus="one")
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "one.npz",
        docs=rng.normal(size=(len(task.documents), 64)).astype(np.float32),
        queries=rng.normal(size=(len(task.queries), 64)).astype(np.float32),
    )
    monkeypatch.setenv("KLSA_VECTORS", str(tmp_path))
    monkeypatch.setattr(vectors, "task_of", lambda name, _: toy_task(name, corpus=name))
    found = vectors.report(Bench(tmp_path / "home"), tmp_path, ["one"])
    means = {kind: np.mean(found["one"][kind]) for kind in ("default", "vectors", "both")}
    assert means["vectors"] < means["default"]
    assert means["both"] > 0.8 * means["default"]
    json.dumps(found)
    assert "| one |" in capsys.readouterr().out


def test_scores_are_those_of_the_search():
    words = np.array([4.0, 2.0, 0.0, 0.0], np.float32)
    evidence = vectors.Evidence(words, np.array([0.0, 5.0, 2.5, -1.0]))
    scores = evidence.scores()
    weight = WEIGHT * 4.0
    assert scores.tolist() == pytest.approx([4.0, 2.0 + weight, weight / 8, 0.0])
    assert len(words) < NEAREST


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
