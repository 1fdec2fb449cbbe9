"""The modules that a query and a document pass through."""

from __future__ import annotations

from benchmarks import passed_modules
from klsa_search.search.query import syntax


def test_modules_of_called_functions_are_found():
    assert passed_modules.passed(lambda: syntax.parse("a pump", {})) == ["search/query/syntax.py"]


def test_queries_builds_and_writes_are_told_apart(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["passed_modules"])
    passed_modules.main()
    query, rest = capsys.readouterr().out.split("a build: ")
    build, write = rest.split("a later write: ")
    assert "service/routes/search.py" in query
    assert "service/routes/search.py" not in rest
    assert "indexing/build.py" in build
    assert "indexing/build.py" not in query + write
    assert "storage/log_writer.py" in write
