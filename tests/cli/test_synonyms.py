"""klsa-index synonyms: set from a file, list, remove, search."""

import json


def ids(done):
    assert done.code == 0, done.err
    return [hit["id"] for hit in done.json["hits"]]


def test_synonyms_are_set_listed_used_and_removed(shell, built, tmp_path):
    assert shell("klsa-index", "synonyms", "cars").out == "cars has no synonyms\n"
    rules = tmp_path / "synonyms.txt"
    rules.write_text("# ours\nwheel rubber => tyre\ncar, automobile\n")
    assert shell("klsa-index", "synonyms", "cars", rules).out == "cars: synonyms of 3 words\n"
    told = {"wheel rubber": ["tyre"], "car": ["automobile"], "automobile": ["car"]}
    assert shell("klsa-index", "synonyms", "cars", "--json").json == told
    assert "wheel rubber" in shell("klsa-index", "synonyms", "cars").out
    asked = ("klsa-search", "cars", "wheel rubber", "--ranker", "bm25", "--json")
    tyres = ids(shell("klsa-search", "cars", "tyre", "--ranker", "bm25", "--json"))
    assert ids(shell(*asked)) == tyres != []
    assert ids(shell(*asked, "--no-synonyms")) == []
    other = tmp_path / "synonyms.json"
    other.write_text(json.dumps(told))
    assert shell("klsa-index", "alias", "live", "cars").code == 0
    assert shell("klsa-index", "synonyms", "live", other, "--json").json == told
    other.write_text(json.dumps({"car": ["vehicle"]}))
    added = shell("klsa-index", "synonyms", "live", other, "--add", "--json").json
    assert added == told | {"car": ["automobile", "vehicle"]}
    done = shell("klsa-index", "synonyms", "cars", "--clear")
    assert done.out == "cars: synonyms of 0 words\n"


def test_invalid_synonyms_are_refused(shell, built, tmp_path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("tyre\n")
    done = shell("klsa-index", "synonyms", "cars", wrong)
    assert (done.code, "only one word" in done.err) == (2, True)
    assert shell("klsa-index", "synonyms", "none", wrong).code == 1
    assert shell("klsa-index", "synonyms", "cars", tmp_path / "nothing").code == 1
    assert shell("klsa-index", "synonyms", "cars", wrong, "--clear").code == 2
    assert shell("klsa-index", "synonyms", "nothing").code == 1
    assert shell("klsa-index", "synonyms", "cars", "--add").code == 2
    wrong.write_bytes("café, bar".encode("latin-1"))
    done = shell("klsa-index", "synonyms", "cars", wrong)
    assert (done.code, "is not UTF-8" in done.err) == (2, True)
