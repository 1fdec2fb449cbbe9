"""klsa-eval forecast."""

import json
from pathlib import Path


def test_queries_come_hardest_first(shell, cars):
    assert shell("klsa-index", "build", cars, "--name", "cars").code == 0
    Path("queries.tsv").write_text("1\tworn tyres\n2\tsubmarines\n3\ttyres and coolant\n")
    done = shell("klsa-eval", "forecast", "cars", "queries.tsv", "--json", "deep/told.json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(Path("deep/told.json").read_text())
    assert [each["id"] for each in told] == ["2", "3", "1"]
    assert told[0] == {"id": "2", "query": "submarines", "wig": None}
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["rank", "wig", "id", "query"]
    assert rows[1] == ["1", "finds", "nothing", "2", "submarines"]
    assert rows[3] == ["3", f"{told[2]['wig']:.2f}", "1", "worn", "tyres"]


def test_what_is_not_there_or_not_read_is_told(shell, cars):
    Path("queries.tsv").write_text("no tab\n")
    done = shell("klsa-eval", "forecast", "cars", "queries.tsv")
    assert done.code == 1
    assert "queries.tsv:1: no tab" in done.err
    Path("queries.tsv").write_text("1\ttyres\n")
    assert "no index" in shell("klsa-eval", "forecast", "cars", "queries.tsv").err
    assert shell("klsa-eval", "forecast", "cars").code == 2
