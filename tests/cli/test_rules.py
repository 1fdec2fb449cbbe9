"""klsa-index rules: set from a file, list, remove, search."""

import json

RULE = {"id": "ours", "when": {"query_is": "engine"}, "then": {"pin": [{"id": "x", "position": 1}]}}


def test_rules_are_set_listed_searched_by_and_removed(shell, built, tmp_path):
    assert shell("klsa-index", "rules", "cars").out == "cars has no rules\n"
    searched = ("klsa-search", "cars", "engine", "--ranker", "bm25", "--json")
    before = shell(*searched).json
    assert "rules" not in before
    last = before["hits"][-1]["id"]
    file = tmp_path / "rules.json"
    rule = {**RULE, "then": {"pin": [{"id": last, "position": 1}, {"id": "x", "position": 2}]}}
    file.write_text(json.dumps([rule]))
    done = shell("klsa-index", "rules", "cars", file)
    assert done.out == "cars: 1 rule\n"
    assert done.err == "warning: rule 'ours': the index has no document 'x'\n"
    assert shell("klsa-index", "rules", "cars", "--json").json == [rule]
    assert "ours" in shell("klsa-index", "rules", "cars").out
    after = shell(*searched).json
    assert (after["hits"][0]["id"], after["rules"]) == (last, ["ours"])
    assert shell(*searched, "--no-rules").json["hits"] == before["hits"]
    explained = shell("klsa-search", "cars", "engine", "-k", "1", "--explain").out
    assert "ours: position 1" in explained
    assert shell("klsa-index", "rules", "cars", "--clear").out == "cars: 0 rules\n"


def test_invalid_files_are_refused(shell, built, tmp_path):
    file = tmp_path / "wrong.json"
    for content in (b"{", b"\xff", b"[" * 100_000, b'[{"id": "x"}]', b"7"):
        file.write_bytes(content)
        assert shell("klsa-index", "rules", "cars", file).code == 2, content
    assert shell("klsa-index", "rules", "none").code == 1
    assert shell("klsa-index", "rules", "cars", file, "--clear").code == 2
    assert shell("klsa-index", "rules", "cars", tmp_path / "nothing").code == 1
