"""The layers of ARCHITECTURE.md: a package imports itself and packages of lower layers only."""

import ast
import re
from pathlib import Path

import pytest

import klsa_search
from tests.support.sources import nodes

PACKAGE = Path(klsa_search.__file__).parent
ROOT = PACKAGE.parent
TOP_LEVEL = PACKAGE / "__init__.py"
LAYERS = {
    name: int(layer)
    for layer, name in re.findall(
        r"^\| (\d+) \| `(\w+)(?:/|\.py)` \|",
        (ROOT / "ARCHITECTURE.md").read_text("utf-8"),
        re.MULTILINE,
    )
}
"""The layer of each package, by the table of ARCHITECTURE.md."""

PRINTING = ("cli", "service")
ENVIRONMENT = {"environ", "getenv"}
READING_ENVIRONMENT = {
    "cluster/ray.py",
    "collection/public_collections.py",
    "core/child_processes.py",
    "embedding/openai.py",
    "storage/names.py",
}
"""Ray takes some settings from the environment only; KLSA_COLLECTIONS and KLSA_HOME apply to Python
as well, and so does the API key of an embedder, which no argument or setting has. Processes that
parse files get all variables but those that may be secret.
"""


STARTING = {
    ("sys", "executable"),
    ("os", "fork"),
    ("os", "system"),
    ("os", "popen"),
    ("os", "posix_spawn"),
    ("os", "posix_spawnp"),
    ("concurrent.futures", "ProcessPoolExecutor"),
}


@pytest.fixture(scope="module", autouse=True)
def _parsed_sources():
    """Parse the package, which takes seconds and is not the work of the test that comes first."""
    next(nodes("klsa_search", ast.Module))


def imports(folder):
    """Yield (file, name of the module, level) of every import."""
    for path, node in nodes(folder, ast.Import):
        yield from ((path, alias.name, 0) for alias in node.names)
    for path, node in nodes(folder, ast.ImportFrom):
        yield path, node.module or "", node.level


def package_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != TOP_LEVEL]


def test_every_package_has_a_layer():
    assert {*map(package_of, modules()), "native"} == set(LAYERS), (
        "add a row to the table of packages in ARCHITECTURE.md, or remove one"
    )


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_pages_for_contributors_name_exist(page):
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:py|hpp|cpp|js|toml|tsv))`", text))
    named = {name for name in named if not name.endswith("NAME.py")}  # to be made
    folders = [ROOT / name for name in ("klsa_search", "tests", "tools", "benchmarks", "studies")]
    files = [path.as_posix() for folder in folders for path in folder.rglob("*.*")]
    files += [path.as_posix() for path in ROOT.glob("*.*")]
    missing = [name for name in named if not any(path.endswith(f"/{name}") for path in files)]
    assert named
    assert not missing


def test_packages_import_lower_layers_only():
    offences = []
    for path, name, level in imports("klsa_search"):
        if level:
            offences.append(f"{path}: relative import of {name}")
        if path == TOP_LEVEL or not name.startswith("klsa_search."):
            continue
        package, other = package_of(path), name.split(".")[1].removeprefix("_")
        if other != package and LAYERS[other] >= LAYERS[package]:
            offences.append(f"{path}: {package} imports {other}")
    assert not offences, "move the code to a lower layer, or pass what it needs as an argument"


def test_the_package_imports_nothing_from_its_repository():
    offences = []
    strangers = {"klsa_search": {"benchmarks", "studies"}, "studies": {"benchmarks"}}
    for folder, strange in strangers.items():
        for path, name, _ in imports(folder):
            if name.split(".")[0] in strange:
                offences.append(f"{path}: imports {name}")
    assert not offences


def test_only_service_and_commands_print_or_read_the_environment():
    offences = []
    for path, name in nodes("klsa_search", ast.Name):
        if name.id == "print" and package_of(path) not in PRINTING:
            offences.append(f"{path}:{name.lineno}: print")
    for path, attribute in nodes("klsa_search", ast.Attribute):
        allowed = path.relative_to(PACKAGE).as_posix() in READING_ENVIRONMENT
        if attribute.attr in ENVIRONMENT and package_of(path) not in PRINTING and not allowed:
            offences.append(f"{path}:{attribute.lineno}: environment")
    assert not offences, "log a warning, or pass a setting as an argument"


def test_processes_are_started_in_one_place():
    offences = []
    started = [
        *(
            (path, node, node.value.id, node.attr)
            for path, node in nodes("klsa_search", ast.Attribute)
            if isinstance(node.value, ast.Name)
        ),
        *(
            (path, node, node.module or "", alias.name)
            for path, node in nodes("klsa_search", ast.ImportFrom)
            for alias in node.names
        ),
        *(
            (path, node, (node.module or "").partition(".")[0], "")
            for path, node in nodes("klsa_search", ast.ImportFrom)
        ),
        *(
            (path, node, alias.name.partition(".")[0], "")
            for path, node in nodes("klsa_search", ast.Import)
            for alias in node.names
        ),
    ]
    for path, node, module, name in started:
        if path == PACKAGE / "core/child_processes.py":
            continue
        execs = module == "os" and name.startswith(("exec", "spawn"))
        if (module, name) in STARTING or module in ("multiprocessing", "runpy") or execs:
            offences.append(f"{path}:{node.lineno}: {module}.{name}")
    assert not offences, "start it by core/child_processes.py"
