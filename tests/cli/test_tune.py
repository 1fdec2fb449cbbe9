import json

import pytest

from tests.evaluation.worlds import few_candidates, topical


@pytest.fixture(autouse=True)
def _few_candidates(monkeypatch):
    few_candidates(monkeypatch)


@pytest.fixture
def world(tmp_path):
    """Documents on six topics, queries of one word, and their judgements, as files."""
    documents = topical()
    rows = [{"id": d.id, "title": d.title, "text": d.text} for d in documents]
    asked = [{"id": f"{t}{n}", "text": f"{t}{n}"} for t in "abcdef" for n in range(3)]
    judged = [
        f"{query['id']} 0 {d.id} 1\n"
        for query in asked
        for d in documents
        if d.id[0] == query["id"][0]
    ]
    (tmp_path / "world.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (tmp_path / "qrels").write_text("".join(judged))
    return ["--queries", tmp_path / "queries.jsonl", "--qrels", tmp_path / "qrels"]


def built(shell, *settings):
    done = shell(
        *("klsa-index", "build", "world.jsonl", "--name", "world", "--language", "none"),
        *("--dimensions", 20, "--latent-dimensions", 10, *settings),
    )
    assert done.code == 0


def settings_of(shell):
    return shell("klsa-index", "info", "world", "--json").json["settings"]


def test_a_sure_choice_is_stored(shell, world, tmp_path):
    built(shell, "--alpha", 0)
    done = shell("klsa-index", "tune", "world", *world, "--json", "deep/tuned.json")
    assert (done.code, done.err) == (0, "")
    told = json.loads((tmp_path / "deep" / "tuned.json").read_text())
    assert told["sure"] is True
    assert (told["index"], told["stored"], told["queries"]) == ("world", "000002", 18)
    assert "significant: stored as generation 000002" in done.out
    settings = settings_of(shell)
    assert {name: settings[name] for name in told["changes"]} == told["changes"]
    assert shell("klsa-index", "verify", "world").code == 0


def test_an_insignificant_gain_is_stored_by_force_only(shell, world, tmp_path):
    # Four judged queries can never be significant: the least p of 2^4 flips is .125.
    lines = (tmp_path / "qrels").read_text().splitlines(keepends=True)
    (tmp_path / "qrels").write_text("".join(line for line in lines if line[:2] in "a0 b0 c0 d0"))
    built(shell, "--alpha", 0)
    done = shell("klsa-index", "tune", "world", *world)
    assert done.code == 0
    assert "the index was not changed" in done.out
    assert settings_of(shell)["alpha"] == 0
    done = shell("klsa-index", "tune", "world", *world, "--force")
    assert "not significant, but forced: stored as generation 000002" in done.out
    assert settings_of(shell)["alpha"] > 0


def test_without_judgements(shell, world, tmp_path):
    built(shell, "--alpha", 0)
    done = shell("klsa-index", "tune", "world", "--json", "tuned.json")
    assert (done.code, done.err) == (0, "")
    assert "60 queries made of document halves" in done.out
    told = json.loads((tmp_path / "tuned.json").read_text())
    assert (told["evidence"], told["margin"], told["stored"]) == ("halves", 0.05, "000002")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--queries", "queries.jsonl"], "given together"),
        (["--qrels", "qrels"], "given together"),
        (["--measure", "map"], "needs judgements"),
        (["--queries", "nowhere", "--qrels", "qrels"], "nowhere"),
    ],
)
def test_wrong_usage(shell, world, arguments, sentence):
    built(shell)
    done = shell("klsa-index", "tune", "world", *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_too_few_judged_queries(shell, beir):
    shell("klsa-index", "build", beir, "--name", "cars")
    files = ("--queries", beir / "queries.jsonl", "--qrels", beir / "qrels" / "test.tsv")
    done = shell("klsa-index", "tune", "cars", *files)
    assert done.code == 1
    assert "2 judged queries are too few: at least 4" in done.err


def test_an_index_too_small_to_halve(shell, built):
    done = shell("klsa-index", "tune", "cars")
    assert done.code == 1
    assert "0 of the 4 documents" in done.err
