"""Modules that a command must not import, so that it starts quickly."""

import json

import pytest

from klsa_search import build
from tests.support.processes import run_python

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from importlib import import_module
module, *arguments = sys.argv[1:]
sys.argv = ["command", *arguments]
try:
    import_module(f"klsa_search.cli.{module}").main()
except SystemExit as left:
    print(json.dumps([left.code, sorted(sys.modules)]))
"""
TO_COMPUTE = {"numpy", "scipy"}
TO_SERVE = {"fastapi", "uvicorn", "starlette"}
TO_FETCH = {"http.client", "ssl", "tarfile", "urllib.request"}
TO_JUDGE = {"ir_measures", "pytrec_eval", "matplotlib", "sklearn"}
TO_BUILD = {"klsa_search.indexing", "multiprocessing.pool", "scipy", "sqlite_utils"}


def loaded(module, *arguments):
    """Names of the modules that are loaded when a command ends well."""
    done = run_python(PROGRAM, module, *map(str, arguments), check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    return set(modules)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    many = [{"id": str(n), "text": f"cold engines stall {n}", "year": n} for n in range(120)]
    build(many, name="many", home=home).close()
    return home


@pytest.mark.parametrize("module", ["index", "search", "serve", "evaluate", "mcp"])
def test_help_loads_nothing_to_work_with(module):
    everything = TO_COMPUTE | TO_SERVE | TO_FETCH | TO_JUDGE | TO_BUILD | {"rich"}
    settings = {"ssl"} if module == "serve" else set()  # pydantic-settings loads asyncio
    assert not loaded(module, "--help") & everything - settings


def test_a_list_of_indexes_opens_none(home):
    everything = TO_COMPUTE | TO_SERVE | TO_FETCH | TO_JUDGE | TO_BUILD
    assert not loaded("index", "list", "--home", home) & everything


@pytest.mark.parametrize("more", [(), ("--ranker", "bm25"), ("--filter", "year > 1"), ("--json",)])
def test_a_search_loads_nothing_to_build_or_judge_with(home, more):
    found = loaded("search", "many", "engines", "--home", home, *more)
    assert "numpy" in found
    assert not found & (TO_SERVE | TO_FETCH | TO_JUDGE | TO_BUILD)


def test_a_write_loads_nothing_to_build_or_judge_with(home, tmp_path):
    """Nor does a search that folds what was written."""
    file = tmp_path / "more.jsonl"
    file.write_text('{"id": "new", "text": "warm engines run", "year": 1}\n')
    for module, *arguments in (
        ("index", "add", "many", file, "--home", home),
        ("index", "delete", "many", "new", "--home", home),
        ("search", "many", "engines", "--home", home),
    ):
        assert not loaded(module, *arguments) & (TO_SERVE | TO_JUDGE | {"scipy"})


def test_the_package_loads_nothing_of_its_own_nor_of_others():
    done = run_python("import sys, klsa_search; print(*sys.modules)", check=True)
    names = set(done.stdout.split())
    core = {f"klsa_search.core.{name}" for name in ("lazy", "deadlines")}
    lazy = {"klsa_search", "klsa_search.core", *core}
    assert {n for n in names if n.startswith("klsa_")} == lazy
    assert not names & (TO_COMPUTE | {"click", "pydantic"})


def test_a_service_loads_no_scipy_to_start():
    done = run_python(
        "import sys, klsa_search.service.application; print(*sys.modules)", check=True
    )
    assert "scipy" not in done.stdout.split()
