"""A small run of each benchmark: its output and the files it writes."""

import json

import pytest

from tests.benchmarks.commands import ROOT, run

pytestmark = pytest.mark.slow


def figures(path):
    return json.loads(path.read_text())


def test_corpora(world, tmp_path):
    data = ("--data", world / "reuters21578")
    run("benchmarks.corpora", "reuters", tmp_path / "all.jsonl", *data)
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 320
    run("benchmarks.corpora", "queries", tmp_path / "queries.tsv", "--count", 3, *data)
    assert len((tmp_path / "queries.tsv").read_text().splitlines()) == 3
    for name in ("one", "two"):
        run("benchmarks.corpora", "generate", 5, tmp_path / name, *data)
    made = (tmp_path / "one").read_text()
    assert made == (tmp_path / "two").read_text()
    assert len(made.splitlines()) == 5


def test_fast_and_exact(built, world, capsys):
    run("benchmarks.fast_and_exact", "--index", built, world / "queries.tsv", "--every", 1)
    assert "corpus overlap@10 " in capsys.readouterr().out


def test_growth(world, built, tmp_path):
    (tmp_path / "less.jsonl").write_text(
        "\n".join((world / "corpus.jsonl").read_text().splitlines()[:200]) + "\n"
    )
    corpora = (tmp_path / "less.jsonl", world / "corpus.jsonl")
    outputs = ("--json", tmp_path / "found.json", "--figure", tmp_path / "growth.png")
    home = ("--home", built.parent)
    run("benchmarks.growth", world / "queries.tsv", *corpora, *home, "--rounds", 1, *outputs)
    rows = figures(tmp_path / "found.json")["rows"]
    assert [row["documents"] for row in rows] == [200, 320]
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_turns(built, world, tmp_path, capfd):
    trees, found = (ROOT, ROOT), tmp_path / "found.json"
    few = ("--rounds", 1, "--k", 3)
    run("benchmarks.turns", built, world / "queries.tsv", *trees, *few, "--json", found)
    assert figures(found)["same_answers"]
    told = capfd.readouterr().out
    assert told.startswith("the same answers\n")
    assert told.count("in batches") == 2


def test_typing_errors(tmp_path, capsys):
    folder, titles = tmp_path / "more" / "few", ("garden umbrella", "kitchen scissors")
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        lines = (json.dumps({"_id": one, "title": one, "text": one}) for one in titles)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels" / "test.tsv").write_text("".join(f"{one}\t{one}\t1\n" for one in titles))
    run("benchmarks.typing_errors", "few", "--queries", 12, "--data", tmp_path)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| few", match, "1.000 → 1.000"] for match in ("any", "all")
    ]


def test_writing(world, tmp_path):
    found, corpus, queries = tmp_path / "found.json", world / "corpus.jsonl", world / "queries.tsv"
    few = ("--first", 30, "--count", 5, "--alone", 2, "--seconds", 0.1)
    run("benchmarks.writing", corpus, queries, *few, "--json", found)
    assert figures(found)["durable_s"] > 0


def test_peers(world, tmp_path):
    cache, found = tmp_path / "cache", tmp_path / "found.json"
    some = ("--peers", "klsa", "klsa-bm25", "--k", 5, "--rounds", 1, "--words", 3, "--json", found)
    run(
        "benchmarks.peers", "--cache", cache, "run", world / "corpus.jsonl", world / "queries.tsv",
        *some,
    )  # fmt: skip
    report = figures(found)
    assert report["documents"] == 320
    assert set(report["peers"]) == {"klsa", "klsa-bm25"}
    assert report["peers"]["klsa"]["k"]["5"]["single_qps"] > 0


def test_index_costs(world, tmp_path, capfd):
    options = ("--vectors", 0, 8, "--data", world / "reuters21578", "--json", tmp_path / "out.json")
    run("benchmarks.index_costs", "reuters", *options)
    without, with_vectors = figures(tmp_path / "out.json").values()
    assert with_vectors["bytes"] > without["bytes"]
    assert with_vectors["cosines_ms"] > 0
