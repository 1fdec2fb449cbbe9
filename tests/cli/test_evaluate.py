import json

import ir_measures
import pytest

from tests.support.worlds import as_if_large

SYSTEMS = ["bm25", "lsi", "paper", "klsa"]
MEASURES = ["map", "ndcg@10", "p@10", "recall@1000"]


def test_map_of_a_folder(shell, beir, tmp_path):
    file, runs = tmp_path / "deep" / "map.json", tmp_path / "runs"
    done = shell("klsa-eval", "map", beir, "--json", file, "--run-dir", runs)
    assert (done.code, done.err) == (0, "")
    means = json.loads(file.read_text())
    assert list(means) == ["cars"]
    assert list(means["cars"]) == SYSTEMS
    assert all(list(values) == MEASURES for values in means["cars"].values())
    # The first query has its one document on top; the second finds nothing.
    assert means["cars"]["bm25"]["map"] == 0.5
    header, first, *_ = done.out.splitlines()
    assert header.split()[:3] == ["target", "system", "map"]
    assert first.split()[:3] == ["cars", "bm25", "0.5000"]
    assert sorted(path.name for path in runs.iterdir()) == sorted(f"cars.{s}.run" for s in SYSTEMS)


def test_every_system_is_judged_where_an_index_stores_no_eigenvectors(shell, beir):
    with as_if_large():
        assert shell("klsa-eval", "map", beir).code == 0


def test_a_collection_without_judgements(shell, cars):
    done = shell("klsa-eval", "map", cars)
    assert done.code == 1
    assert "no relevance judgements" in done.err


def test_two_targets_of_one_name_are_wrong_usage(shell, beir, tmp_path):
    twin = tmp_path / "more" / "cars"
    twin.parent.mkdir()
    beir.rename(twin)
    (tmp_path / "cars").symlink_to(twin)
    assert shell("klsa-eval", "map", twin, tmp_path / "cars").code == 2


def test_no_such_target(shell):
    done = shell("klsa-eval", "map", "nowhere")
    assert done.code == 1
    assert "nowhere" in done.err


def test_fetch_refuses_what_is_not_public(shell, tmp_path):
    done = shell("klsa-eval", "fetch", "trec9", "--data", tmp_path / "data")
    assert done.code == 2
    assert "trec9" in done.err


def test_fetch_without_a_home_needs_a_folder(shell, monkeypatch):
    monkeypatch.setattr("klsa_search.collection.public_collections.cache_folder", lambda: None)
    done = shell("klsa-eval", "fetch", "cran")
    assert done.code == 2
    assert "name a folder with --data FOLDER" in done.err


def test_a_collection_in_the_cache_is_found_past_a_folder_without_it(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("KLSA_COLLECTIONS", str(tmp_path / "named"))
    monkeypatch.setattr(
        "klsa_search.collection.public_collections.cache_directory", lambda: tmp_path / "cache"
    )
    done = shell("klsa-eval", "map", "med")
    assert done.code == 1
    assert f"{tmp_path / 'named'} or {tmp_path / 'cache'}" in done.err
    assert f"`klsa-eval fetch med --data {tmp_path / 'cache'}`" in done.err
    folder = tmp_path / "cache" / "med"
    folder.mkdir(parents=True)
    (folder / "MED.ALL").write_text(".I 1\n.W\nheat\n.I 2\n.W\ncold\n.I 3\n.W\nrain\n")
    (folder / "MED.QRY").write_text(".I 1\n.W\nheat\n")
    (folder / "MED.REL").write_text("1 0 1 1\n")
    assert shell("klsa-eval", "map", "med").code == 0


@pytest.mark.slow
def test_other_tools_agree_on_a_real_collection(shell, collections_home, tmp_path):
    file, runs = tmp_path / "map.json", tmp_path / "runs"
    targets = ["med", "--data", collections_home, "--json", file, "--run-dir", runs]
    assert shell("klsa-eval", "map", *targets).code == 0
    ours = json.loads(file.read_text())["med"]
    qrels = list(ir_measures.read_trec_qrels(str(collections_home / "med" / "MED.REL")))
    for system in SYSTEMS:
        run = ir_measures.read_trec_run(str(runs / f"med.{system}.run"))
        theirs = ir_measures.calc_aggregate([ir_measures.AP], qrels, run)
        assert ours[system]["map"] == pytest.approx(theirs[ir_measures.AP], abs=1e-12)


@pytest.mark.parametrize(
    ("command", "judged", "error"),
    [
        ("map", "301\theat\t1\n302\troad\t1\n", "none of the 2 judged queries of cars is among"),
        ("map", "heat\t1\t1\nroad\t2\t1\n", "check the order of the columns"),
        ("compare", "1\tHEAT\t1\n2\tROAD\t1\n", "none of the 2 judged documents of cars is"),
    ],
)
def test_judgements_of_other_queries_or_documents_are_refused(shell, beir, command, judged, error):
    (beir / "qrels" / "test.tsv").write_text(judged)
    done = shell("klsa-eval", command, beir)
    assert (done.code, done.out) == (1, "")
    assert error in done.err


def test_judgements_that_match_in_part_are_counted_in_notes(shell, beir):
    (beir / "qrels" / "test.tsv").write_text("1\theat\t1\n1\tHEAT\t2\n1\tROAD\t0\n9\theat\t1\n")
    done = shell("klsa-eval", "map", beir)
    assert done.code == 0
    assert done.err.splitlines() == [
        "note: 1 of the 2 judged queries of cars are not among its queries; they count 0",
        "note: 2 of the 4 judgements of cars are of documents that it does not contain; "
        "1 are relevant and count as not found",
    ]
    assert done.out.splitlines()[1].split()[:3] == ["cars", "bm25", "0.2500"]
