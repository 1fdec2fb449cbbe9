"""klsa-index judgements, klsa-eval judgements."""

import json
from pathlib import Path

import pytest

from klsa_search import open_index
from klsa_search.collection import read_qrels, read_queries


@pytest.fixture
def judged(built):
    index = open_index(Path("index/cars"))
    for query, id_, grade in (
        ("coolant leaks", "heat", 2),
        ("coolant leaks", "tyre", 0),
        ("slippery", "tyre", 1),
    ):
        index.judge(query, id_, grade)
    index.close()


def test_judgements_are_shown_and_written_out(shell, judged):
    lines = shell("klsa-index", "judgements", "cars").out.splitlines()
    assert [line.split() for line in lines] == [
        ["number", "relevant", "not", "query"],
        ["1", "1", "1", "coolant", "leaks"],
        ["2", "1", "0", "slippery"],
    ]
    assert shell("klsa-index", "judgements", "cars", "--json").json[1] == {
        "number": 2, "query": "slippery", "grades": {"tyre": 1},
    }  # fmt: skip
    assert shell("klsa-index", "alias", "live", "cars").code == 0
    assert shell("klsa-index", "judgements", "live").out.splitlines() == lines
    done = shell("klsa-index", "judgements", "cars", "--out", "deep/own.qrels")
    assert done.out == "cars: 3 judgements in deep/own.qrels, 2 queries in deep/own.queries.tsv\n"
    assert Path("deep/own.qrels").read_text() == "1 0 heat 2\n1 0 tyre 0\n2 0 tyre 1\n"
    assert len(read_qrels("deep/own.qrels")) == 3
    assert [query.text for query in read_queries(Path("deep/own.queries.tsv"))] == [
        "coolant leaks",
        "slippery",
    ]


def test_judgements_that_a_format_cannot_store_are_named(shell):
    lines = [{"id": "annual report.pdf", "text": "leaks"}, {"id": "heat", "text": "it leaks"}]
    Path("files.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert shell("klsa-index", "build", "files.jsonl", "--name", "files").code == 0
    index = open_index(Path("index/files"))
    index.judge("leaks", "annual report.pdf", 2)
    index.judge("leaks", "heat", 1)
    index.close()
    done = shell("klsa-index", "judgements", "files", "--out", "own.qrels")
    assert done.code == 0
    assert Path("own.qrels").read_text() == "1 0 heat 1\n"
    assert "'annual report.pdf', judged 2 for query 1, was left out of own.qrels" in done.err


def test_without_any_it_says_so(shell, built):
    assert shell("klsa-index", "judgements", "cars").out == "cars has no judgements\n"
    assert "has no judgements" in shell("klsa-eval", "judgements", "cars").err
    assert shell("klsa-index", "judgements", "nothing").code == 1


def test_rankers_are_measured_by_them(shell, judged):
    done = shell("klsa-eval", "judgements", "cars", "--json", "own.json")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0][:5] == ["system", "map", "95%", "gain", "p"]
    assert (rows[1][0], rows[2][0]) == ("bm25", "klsa")
    found = json.loads(Path("own.json").read_text())["systems"]
    assert list(found["klsa"]["values"]) == ["1", "2"]
    contrast = found["klsa"]["contrast"]
    assert contrast["wins"] + contrast["losses"] + contrast["ties"] == 2
    assert (
        shell("klsa-eval", "judgements", "cars", "--ranker", "klsa", "--ranker", "klsa").code == 2
    )
    assert shell("klsa-index", "delete", "cars", "tyre").code == 0
    assert "2 judgements of deleted documents" in shell("klsa-eval", "judgements", "cars").err
