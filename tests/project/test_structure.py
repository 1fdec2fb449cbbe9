"""Size of modules and functions, imports without circles, and types of the core packages."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import klsa_search
from tests.support.sources import nodes

PACKAGE = Path(klsa_search.__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _parsed_sources():
    """Parse the package, which takes seconds and is not the work of the test that comes first."""
    next(nodes("klsa_search", ast.Module))


MAX_LINES = 450
"""Lines of a module."""

MAX_PARAMETERS = 8
"""Parameters of a function, without `self` and `**options`."""

OPTION_LISTS = {
    "collection/opened_collection.py:__init__",
    "indexing/build.py:build",
}
"""Functions whose keyword-only parameters are options of the public API."""

ANY = {
    "analysis": 2,
    "core": 29,
    "delta": 10,
    "indexing": 10,
    "kernels": 8,
    "lowrank": 6,
    "search": 60,
    "storage": 78,
}
"""Uses of `Any` in packages that read no JSON of others, which only become fewer."""

SAYS_NOTHING = {"each", "elsewhere", "found", "given", "known", "own", "place", "places", "whole"}
"""Words that are no names: they do not say of what."""

MUTUAL = {"search/state/passages.py": {"search/state/state.py"}}
"""Imports for types of modules that define each other: a state has passages, which have a state."""


@cache
def modules():
    """Return the files of all modules by their dotted names, without that of the package."""
    return {
        ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "__init__.py"
    }


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def imported():
    """Yield (file, name of the imported module) of all imports of modules of the package."""
    for path, node in nodes("klsa_search", ast.Import):
        yield from ((path, alias.name) for alias in node.names if alias.name in modules())
    for path, node in nodes("klsa_search", ast.ImportFrom):
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            name = submodule if submodule in modules() else node.module
            if name in modules():
                yield path, name


def test_no_module_is_long():
    lines = {
        name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules().values()
    }
    assert not {name: count for name, count in lines.items() if count > MAX_LINES}, (
        f"more than {MAX_LINES} lines: move the second idea of the module to another"
    )


def test_no_function_has_many_parameters():
    # Parameters of commands are their options.
    offences = set()
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        for path, function in nodes("klsa_search", kind):
            given = function.args
            names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in names)
            if count > MAX_PARAMETERS and not name_of(path).startswith("cli/"):
                offences.add(f"{name_of(path)}:{function.name}")
    assert offences == OPTION_LISTS, (
        f"more than {MAX_PARAMETERS} parameters: join those that belong together in a class"
    )


def test_imports_form_no_circle():
    # Imports for types and those inside functions count as well.
    graph = {}
    for path, name in imported():
        target = name_of(modules()[name])
        if target != name_of(path) and target not in MUTUAL.get(name_of(path), ()):
            graph.setdefault(name_of(path), set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"circle: {' <- '.join(error.args[1])}") from None


def test_packages_of_search_import_those_before_them():
    table = (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8")
    [row] = re.findall(r"^\| 8 \| `search/` \|(.*)", table, re.MULTILINE)
    order = {name: number for number, name in enumerate(re.findall(r"`(\w+)/`", row))}
    assert order.keys() == {path.parent.name for path in PACKAGE.glob("search/*/__init__.py")}
    offences = set()
    for path, name in imported():
        importing, target = name_of(path).split("/"), name.split(".")[1:]
        if importing[0] != "search" or target[0] != "search" or len(importing) < 3:
            continue
        if order.get(target[1], -1) > order[importing[1]]:
            offences.add((name_of(path), name))
    assert not offences, "move the code to an earlier package, in the order of ARCHITECTURE.md"


def test_any_becomes_rarer_in_the_core():
    used = Counter(
        name_of(path).partition("/")[0]
        for path, name in nodes("klsa_search", ast.Name)
        if name.id == "Any"
    )
    assert not {package: used[package] for package in ANY if used[package] > ANY[package]}, (
        "more uses of `Any` than before: give the types"
    )


def test_names_say_what_they_name():
    folder = PACKAGE.name
    named = [
        *((path, node, node.id) for path, node in nodes(folder, ast.Name) if is_stored(node)),
        *(
            (path, node, node.attr)
            for path, node in nodes(folder, ast.Attribute)
            if is_stored(node)
        ),
        *((path, node, node.arg) for path, node in nodes(folder, ast.arg)),
        *((path, node, node.name) for path, node in nodes(folder, ast.FunctionDef)),
    ]
    assert not [
        f"{name_of(path)}:{node.lineno}: {name}"
        for path, node, name in named
        if name.strip("_") in SAYS_NOTHING
    ], "choose names that say of what, such as `matches` for `found`"


def is_stored(node):
    return isinstance(node.ctx, ast.Store)
