"""Commands on an index in partitions: they work, or say in one sentence that they do not."""

import json


def test_an_index_in_partitions_is_described_searched_and_exported(shell, cars, tmp_path):
    done = shell("klsa-index", "build", cars, "--name", "cars", "--partitions", "2", "--workers", 1)
    assert done.code == 0, done.err
    assert "partitions" in done.out
    (listed,) = shell("klsa-index", "list", "--json").json
    assert (listed["name"], listed["counts"]["documents"]) == ("cars", 4)
    assert listed["bytes"] > 0
    info = shell("klsa-index", "info", "cars", "--json").json
    assert sum(each["documents"] for each in info["partitions"]) == 4
    assert "partition 000001-1" in shell("klsa-index", "info", "cars").out
    assert shell("klsa-index", "alias", "live", "cars").code == 0
    found = shell("klsa-search", "live", "coolant", "--json").json
    assert {hit["id"] for hit in found["hits"]} >= {"heat", "cold"}
    assert shell("klsa-index", "settings", "cars", "--alpha", "0.6").code == 0
    assert shell("klsa-index", "settings", "cars", "--json").json["alpha"] == 0.6
    assert shell("klsa-index", "dump", "cars", "out.jsonl").code == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == ["cold", "heat", "road", "tyre"]
    done = shell("klsa-search", "cars", "coolant", "--ranker", "lsi")
    assert (done.code in (1, 2), "has partitions" in done.err) == (True, True)
    assert shell("klsa-index", "delete-index", "cars", "--yes").code == 0
