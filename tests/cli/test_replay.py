"""Recording and replaying a run from the command line."""

import json

import pytest


@pytest.fixture
def recorded(shell, built, tmp_path):
    (tmp_path / "queries.tsv").write_text("1\twet roads\n2\tcoolant\n")
    asked = ["--batch", "queries.tsv", "--run", "runs/out.trec", "--record", "runs/out.json"]
    done = shell("klsa-search", "cars", *asked, "--alpha", 0.5, "-k", 3)
    assert done.code == 0
    assert done.out.startswith("2 queries, ")
    return json.loads((tmp_path / "runs" / "out.json").read_text())


@pytest.fixture
def replay(shell, recorded):
    return lambda *more: shell(
        "klsa-eval", "replay", "runs/out.json", "--queries", "queries.tsv", *more
    )


def test_a_replay_repeats_the_run(recorded, replay, shell, tmp_path):
    assert (recorded["k"], recorded["parameters"]["alpha"]) == (3, 0.5)
    shell(
        "klsa-search", "cars", "--batch", "queries.tsv", "--run", "plain", "--alpha", 0.5, "-k", 3
    )
    run = (tmp_path / "runs" / "out.trec").read_bytes()
    assert (tmp_path / "plain").read_bytes() == run
    for more, index in (((), "opened"), (("--source", "cars.jsonl"), "rebuilt")):
        done = replay("--out", "again.trec", *more)
        same, files = done.out.splitlines()
        assert same.startswith("out.trec: identical, 2 queries, ")
        assert files.startswith(f"index {index}: all ")
        assert (done.code, done.err) == (0, "")
        assert (tmp_path / "again.trec").read_bytes() == run


def test_differences_are_printed(recorded, replay, shell, tmp_path):
    other = {**recorded, "versions": {**recorded["versions"], "numpy": "0.1"}}
    (tmp_path / "runs" / "out.json").write_text(json.dumps(other))
    done = replay()
    assert done.code == 0
    assert done.err.startswith("note: numpy ")
    (tmp_path / "runs" / "out.json").write_text(json.dumps({**other, "k": 1}))
    done = replay("--run", "runs/out.trec")
    assert done.code == 1
    assert "line 2 was '1 Q0 " in done.err
    (tmp_path / "new.jsonl").write_text('{"id": "new", "text": "New roads."}\n')
    assert "has other documents (1)" in replay("--source", "new.jsonl").err
    shell("klsa-index", "add", "cars", "new.jsonl")
    assert "`cars` has writes after its build" in replay().err


@pytest.mark.parametrize(
    "more",
    [
        ["--home", "index", "--source", "cars.jsonl"],
        ["--out", "queries.tsv"],
        ["--run", "out", "--out", "out"],
    ],
)
def test_wrong_usage(replay, more):
    assert replay(*more).code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["x", "--record", "r"],
        ["--batch", "q", "--run", "r", "--record", "r"],
        ["--batch", "q", "--run", "r", "--record", "q"],
        ["--batch", "q", "--run", "/dev/null", "--record", "r"],
        ["--batch", "q", "--run", "r", "--record", "s", "--url", "http://127.0.0.1:1"],
    ],
)
def test_wrong_usage_of_a_record(shell, arguments):
    assert shell("klsa-search", "cars", *arguments).code == 2
