"""Dependencies: each import is declared, and serving needs no extra."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import klsa_search
from benchmarks.package import OURS, told
from build_backend import IS_STABLE
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.slow

PACKAGE = Path(klsa_search.__file__).parent
ROOT = PACKAGE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    "IPython": "core/progress.py",  # of a notebook
    "backports": "collection/lines.py",
    "compression": "collection/lines.py",  # of Python, from 3.14
    "ir_measures": "evaluation/measures.py",
    "lxml": "collection/files/",
    "fsspec": "storage/objects.py",
    "matplotlib": "core/drawing.py",
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
    "onnxruntime": "embedding/local_models.py",
    "mcp_types": "connect/mcp.py",
    "pandas": "connect/pyterrier.py",
    "pyarrow": "collection/tables.py",
    "pyterrier": "connect/pyterrier.py",
    "python_calamine": "collection/tables.py",
    "ray": "cluster/ray.py",
    "sentence_transformers": "embedding/local_models.py",
    "tokenizers": "embedding/local_models.py",
    "watchfiles": "cli/sync.py",
}
"""Likewise of the extras that the tests do not bring."""
PARTS = {"pydantic_core": "pydantic", "starlette": "fastapi"}
"""Modules that come with another, whose version chooses theirs."""


def names(requirements):
    """Names of distributions, as pip compares them."""
    return {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-") for each in requirements}


def imported():
    """Top-level names that the package imports from others: (file, name)."""
    ours = {"klsa_search", "studies"} | set(sys.stdlib_module_names)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ast.parse(path.read_text())
        for_type_checkers = {
            statement
            for node in ast.walk(module)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
        }
        for node in ast.walk(module):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module]
            for name in found:
                first = name.partition(".")[0]
                is_of_mypy = first == "typing_extensions" and node in for_type_checkers
                if first not in ours and not is_of_mypy:
                    yield path.relative_to(PACKAGE).as_posix(), first


INSTALLED = cache(packages_distributions)


def distributions(module):
    found = INSTALLED().get(PARTS.get(module, module), [])
    return {name.lower().replace("_", "-") for name in found}


def test_imported_packages_are_declared():
    core = names(PROJECT["dependencies"])
    for path, module in imported():
        if module not in EXTRAS | CONNECTORS:
            assert distributions(module) & core, f"{path} imports {module}"


def test_declared_packages_are_imported():
    used = set().union(*(distributions(module) for _, module in imported()))
    through_another = {"httptools", "pytrec-eval-terrier"}  # by uvicorn and ir_measures
    extras = PROJECT["optional-dependencies"]
    optional = names(extras["eval"] + extras["estimators"] + extras["figures"])
    assert (names(PROJECT["dependencies"]) | optional) - used <= through_another


def test_extras_are_imported_where_they_are_used():
    rooms = EXTRAS | CONNECTORS
    for path, module in imported():
        if module in rooms:
            assert path.startswith(rooms[module]), f"{path} imports {module}"


def test_each_connector_has_its_extra():
    for path in (PACKAGE / "connect").glob("[a-z]*.py"):
        assert PROJECT["optional-dependencies"][path.stem.partition("_")[0]]


BUILD = """
import pathlib
import sys
sys.path.insert(0, "")
import build_backend
_, folder = sys.argv  # which it changes
build_backend.build_wheel(folder)
pathlib.Path("klsa_search/_native.pyi").touch()  # as an editable build leaves it
build_backend.build_sdist(folder)
"""
HOSTS = (".ci/", ".github/")
"""What only the host of the repository reads."""


def kept():
    """Names of the files that git keeps, or would with the next commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs into a wheel is told by git, and this is no checkout")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(
        listed, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of what git keeps: (zip, names in the sdist)."""
    folder = tmp_path_factory.mktemp("built")
    for name in kept():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, folder],
        cwd=folder / "source",
        env=os.environ | {"VALIDATE_PYPROJECT_NO_NETWORK": "1"},
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,  # the module is compiled
    )
    assert done.returncode == 0, done.stderr
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        names = {each.name.partition("/")[2] for each in packed if each.isfile()}
    with zipfile.ZipFile(wheel) as packed:
        yield packed, names


def test_the_wheel_holds_the_package_alone(built):
    names = set(built[0].namelist())
    facts = {name for name in names if ".dist-info/" in name}
    python = {name for name in kept() if name.startswith("klsa_search/")}
    sources = {name for name in python if name.startswith("klsa_search/native/")}
    suffix = ".abi3.so" if IS_STABLE else sysconfig.get_config_var("EXT_SUFFIX")
    module = f"klsa_search/_native{suffix}"
    assert names - facts == python - sources | {module, "klsa_search/_native.pyi"}
    assert names > {
        "klsa_search/py.typed",
        "klsa_search/service/page/index.html",
        "klsa_search/service/page/klsa.d.ts",
        "klsa_search/service/page/klsa.js",
    }
    lists = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt"}
    assert {name.partition("/")[2] for name in facts} == lists | {"licenses/LICENSE"}


def test_the_sdist_holds_what_git_keeps(built):
    names = {name for name in built[1] if not name.startswith("klsa_search.egg-info/")}
    wanted = {name for name in kept() if not name.startswith(HOSTS)}
    assert names - {"PKG-INFO", "setup.cfg"} == wanted


def test_the_wheel_says_what_it_is(built):
    [facts] = [name for name in built[0].namelist() if name.endswith(".dist-info/METADATA")]
    said = message_from_bytes(built[0].read(facts))
    assert (said["Name"], said["Version"]) == ("klsa-search", PROJECT["version"])
    assert (said["License-Expression"], said["License-File"]) == ("MIT", "LICENSE")
    assert said["Description-Content-Type"] == "text/markdown"
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert set(said.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    needed = {each for each in said.get_all("Requires-Dist") if "extra ==" not in each}
    assert names(needed) == names(PROJECT["dependencies"])
    assert "Typing :: Typed" in said.get_all("Classifier")


def test_the_changelog_has_the_version_with_its_date():
    sections = re.findall("^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", each) for each in sections[1:])
    releases = [each.split(" - ") for each in sections[1:]]
    assert not releases or releases[0][0] == PROJECT["version"]
    dates = [date for _, date in releases]
    assert dates == sorted(dates, reverse=True)


def locked(text):
    """Versions by distribution in a file of requirements/; several if they depend on Python."""
    found = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE):
        found.setdefault(name, []).append(version)
    return found


def declared(*extras):
    """Requirements with these extras, and with the extras that they include."""
    yield from PROJECT["dependencies"]
    for each in (each for extra in extras for each in PROJECT["optional-dependencies"][extra]):
        if own := re.fullmatch(r"klsa-search\[(.*)\]", each):
            yield from declared(*own[1].split(","))
        else:
            yield each


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("test.txt", ["test"]),
        ("run.txt", ["eval"]),
        ("oldest.txt", ["estimators", "eval", "figures", "files", "remote"]),
    ],
)
def test_installed_packages_are_locked(name, extras):
    versions = locked((ROOT / "requirements" / name).read_text())
    for each in map(Requirement, declared(*extras)):
        found = versions[canonicalize_name(each.name)]
        assert all(version in each.specifier for version in found), each


def test_every_file_of_requirements_has_hashes():
    for path in (ROOT / "requirements").glob("*.txt"):
        blocks = re.split(r"\n(?=\S)", path.read_text())
        packages = [block for block in blocks if not block.startswith("#")]
        assert packages, path.name
        assert all("--hash=sha256:" in block for block in packages), path.name


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_each_command_prints_the_version(name, monkeypatch, capsys):
    module, _, function = PROJECT["scripts"][name].partition(":")
    monkeypatch.setattr(sys, "argv", [name, "--version"])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit) as left:
        getattr(import_module(module), function)()
    assert left.value.code == 0
    assert capsys.readouterr().out.endswith(f"{name}, version {klsa_search.__version__}\n")


def test_the_measured_dependencies_of_a_wheel_are_those_declared(built):
    version, extras, commands = told(Path(built[0].filename))
    assert version == PROJECT["version"]
    assert set(commands) == set(PROJECT["scripts"])
    assert set(PROJECT["optional-dependencies"]) - set(extras) == set(OURS)


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
def ask(names, settings, address, *_, **__):
    def asked():
        try:
            with urlopen(f"{address}/search?q=engines", timeout=300) as answer:
                print(json.load(answer)["hits"][0]["id"], flush=True)
        finally:
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
    assert (done.returncode, done.stdout) == (0, "heat\n"), done.stderr
    assert done.stderr == "Opening 1 index in index\n"


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("evaluate", ["klsa-eval", "map", "nowhere"], "eval"),
        ("evaluate", ["klsa-eval", "compare", "nowhere"], "eval"),
        ("index", ["klsa-index", "tune", "cars"], "eval"),
        ("index", ["klsa-index", "backup", "--all", "s3://bucket/kept"], "remote"),
        ("mcp", ["klsa-mcp"], "mcp"),
    ],
)
def test_a_command_without_its_extra_says_so_at_once(folder, module, arguments, extra):
    done = run(JUDGE.format(module=module, arguments=arguments), folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"pip install 'klsa-search[{extra}]'\n")
