"""The import rule of ARCHITECTURE.md: packages import themselves and lower layers only."""

from __future__ import annotations

import ast
from pathlib import Path

import klsa_search
from tests.support.sources import nodes

PACKAGE = Path(klsa_search.__file__).parent
FACE = PACKAGE / "__init__.py"
FLOORS = {
    "errors": 0,
    "config": 0,
    "arrays": 0,
    "bars": 0,
    "cgroups": 0,
    "child_processes": 0,
    "compiling": 0,
    "deadlines": 0,
    "drawing": 0,
    "extras": 0,
    "forks": 0,
    "growing": 0,
    "keywords": 0,
    "lazily": 0,
    "version": 0,
    "processors": 0,
    "progress": 0,
    "selection": 0,
    "collection": 1,
    "analysis": 2,
    "features": 3,
    "kernel": 4,
    "spectrum": 5,
    "expansion": 6,
    "estimators": 6,
    "store": 7,
    "delta": 8,
    "search": 9,
    "indexing": 10,
    "mining": 10,
    "evaluation": 11,
    "connect": 11,
    "cluster": 11,
    "service": 12,
    "cli": 12,
}
# Commands that start the service, and make its keys, are the bridges on the top floor.
BRIDGES = {
    (f"cli/{each}.py", "service")
    for each in ("keys", "serve", "service_options", "serving", "worker", "workers")
}
TOP = ("cli", "service")
ENVIRONMENT = {"environ", "getenv"}
READING_ENVIRONMENT = {"cluster/ray.py", "collection/homes.py", "compiling.py"}
"""Ray takes some settings from the environment only; KLSA_COLLECTIONS holds for Python as well, and
so do the variables of numba, which must be known before it is imported."""


def imports(folder: str):
    """Yield (file, name of the module, level) of every import."""
    for path, node in nodes(folder, ast.Import):
        yield from ((path, alias.name, 0) for alias in node.names)
    for path, node in nodes(folder, ast.ImportFrom):
        yield path, node.module or "", node.level


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != FACE]


def test_every_room_has_a_floor():
    assert {room_of(path) for path in modules()} == set(FLOORS)


def test_rooms_import_lower_floors_only():
    offences = []
    for path, name, level in imports("klsa_search"):
        if level:
            offences.append(f"{path}: relative import of {name}")
        if path == FACE or not name.startswith("klsa_search."):
            continue
        room, other = room_of(path), name.split(".")[1]
        bridge = (path.relative_to(PACKAGE).as_posix(), other) in BRIDGES
        if other != room and FLOORS[other] >= FLOORS[room] and FLOORS[room] > 0 and not bridge:
            offences.append(f"{path}: {room} imports {other}")
    assert not offences


def test_what_lies_beside_the_package_is_not_imported_by_it():
    offences = []
    strangers = {"klsa_search": {"benchmarks", "studies"}, "studies": {"benchmarks"}}
    for folder, strange in strangers.items():
        for path, name, _ in imports(folder):
            if name.split(".")[0] in strange:
                offences.append(f"{path}: imports {name}")
    assert not offences


def test_floors_below_the_top_print_nothing_and_read_no_environment():
    offences = []
    for path, name in nodes("klsa_search", ast.Name):
        if name.id == "print" and room_of(path) not in TOP:
            offences.append(f"{path}:{name.lineno}: print")
    for path, attribute in nodes("klsa_search", ast.Attribute):
        allowed = path.relative_to(PACKAGE).as_posix() in READING_ENVIRONMENT
        if attribute.attr in ENVIRONMENT and room_of(path) not in TOP and not allowed:
            offences.append(f"{path}:{attribute.lineno}: environment")
    assert not offences
