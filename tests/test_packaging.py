"""What is installed: each import is declared, and what only extras bring is not needed to serve."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import klsa_search
from klsa_search.service.schema import EXAMPLES

PACKAGE = Path(klsa_search.__file__).parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
EXTRAS = {
    "backports": "collection/lines.py",
    "compression": "collection/lines.py",  # of Python, from 3.14
    "ir_measures": "evaluation/measures.py",
    "lxml": "collection/files/",
    "matplotlib": "drawing.py",
    "py3langid": "analysis/detecting.py",
    "pypdfium2": "collection/files/",
    "pytrec_eval": "evaluation/",
    "sklearn": "estimators/",
}
"""Modules that only extras bring, and where they are imported."""
CONNECTORS = {
    "haystack": "connect/haystack",
    "ir_datasets": "collection/irds.py",
    "langchain_core": "connect/langchain.py",
    "mcp": "connect/mcp.py",
    "mcp_types": "connect/mcp.py",
    "pandas": "connect/pyterrier.py",
    "pyterrier": "connect/pyterrier.py",
}
"""Likewise of the extras that the tests do not bring."""
PARTS = {"llvmlite": "numba", "pydantic_core": "pydantic", "starlette": "fastapi"}
"""Modules that come with another, whose version chooses theirs."""


def names(requirements):
    """Names of distributions, as pip compares them."""
    return {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-") for each in requirements}


def imported():
    """Top-level names that the package imports from others: (file, name)."""
    ours = {"klsa_search", "studies"} | set(sys.stdlib_module_names)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module]
            for name in found:
                first = name.partition(".")[0]
                if first not in ours:
                    yield path.relative_to(PACKAGE).as_posix(), first


INSTALLED = cache(packages_distributions)


def distributions(module):
    found = INSTALLED().get(PARTS.get(module, module), [])
    return {name.lower().replace("_", "-") for name in found}


def test_what_is_imported_is_declared():
    core = names(PROJECT["dependencies"])
    for path, module in imported():
        if module not in EXTRAS | CONNECTORS:
            assert distributions(module) & core, f"{path} imports {module}"


def test_what_is_declared_is_imported():
    used = set().union(*(distributions(module) for _, module in imported()))
    through_another = {"pytrec-eval-terrier"}  # by ir_measures
    extras = PROJECT["optional-dependencies"]
    optional = names(extras["eval"] + extras["estimators"] + extras["figures"])
    assert (names(PROJECT["dependencies"]) | optional) - used <= through_another


def test_extras_are_imported_where_they_are_asked_for():
    rooms = EXTRAS | CONNECTORS
    for path, module in imported():
        if module in rooms:
            assert path.startswith(rooms[module]), f"{path} imports {module}"


def test_each_connector_has_its_extra():
    for path in (PACKAGE / "connect").glob("[a-z]*.py"):
        assert PROJECT["optional-dependencies"][path.stem.partition("_")[0]]


def test_the_wheel_holds_the_package_alone():
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]
    assert settings["setuptools"]["packages"]["find"]["include"] == ["klsa_search*"]


def test_the_wheel_holds_the_files_of_the_service():
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]
    patterns = settings["setuptools"]["package-data"]["klsa_search.service"]
    service = PACKAGE / "service"
    packed = {path for pattern in patterns for path in service.glob(pattern) if path.is_file()}
    page = {path for path in (service / "page").rglob("*") if path.is_file()}
    assert page
    assert packed == page | {EXAMPLES}


WITHOUT_EXTRAS = f"""
import json, re, signal, subprocess, sys, threading
from urllib.request import urlopen
for name in {[*EXTRAS, *CONNECTORS]!r}:
    sys.modules[name] = None  # as if it were not installed
"""
BUILD_AND_SEARCH = """
from klsa_search.cli.index import klsa_index
from klsa_search.cli.search import klsa_search
klsa_index(["build", "cars.jsonl", "--name", "cars"], standalone_mode=False)
klsa_search(["cars", "engines", "--json"], standalone_mode=False)
klsa_search(["cars", "--batch", "queries.tsv", "--run", "out.trec"], standalone_mode=False)
klsa_index(["related", "cars", "engines"], standalone_mode=False)
print(open("out.trec").read())
"""
SERVE = """
import klsa_search.cli.serving as serving
from klsa_search.cli.serve import main
def ask(names, address, *_):
    def asked():
        with urlopen(f"{address}/search?q=engines", timeout=60) as answer:
            print(json.load(answer)["hits"][0]["id"], flush=True)
        signal.raise_signal(signal.SIGTERM)
    threading.Thread(target=asked).start()
serving._announce = ask
sys.argv = ["klsa-serve", "--port", "0"]
main()
"""
JUDGE = """
from klsa_search.cli.{module} import main
sys.argv = {arguments!r}
main()
"""


def run(program, folder):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + program],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without")
    documents = [
        {"id": "heat", "text": "engines overheat when coolant leaks"},
        {"id": "tyre", "text": "worn tyres slip on wet roads"},
    ]
    (folder / "cars.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    (folder / "queries.tsv").write_text("1\tengines\n")
    done = run(BUILD_AND_SEARCH, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"id": "heat"' in done.stdout
    assert "1 Q0 heat 1 " in done.stdout
    return folder


def test_build_search_and_serve_need_no_extra(folder):
    done = run(SERVE, folder)
    assert (done.returncode, done.stderr) == (0, "Opening 1 index in index\n")
    assert done.stdout == "heat\n"


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("evaluate", ["klsa-eval", "map", "nowhere"], "eval"),
        ("evaluate", ["klsa-eval", "compare", "nowhere"], "eval"),
        ("evaluate", ["klsa-eval", "figure", "nowhere", "--out", "a.png"], "figures"),
        ("index", ["klsa-index", "tune", "nowhere"], "eval"),
        ("mcp", ["klsa-mcp"], "mcp"),
    ],
)
def test_a_command_without_its_extra_says_so_at_once(folder, module, arguments, extra):
    done = run(JUDGE.format(module=module, arguments=arguments), folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"pip install 'klsa-search[{extra}]'\n")
