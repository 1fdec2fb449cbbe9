"""The import rule of ARCHITECTURE.md: a room imports itself and lower floors, by absolute name."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import klsa_search

PACKAGE = Path(klsa_search.__file__).parent
FLOORS = {
    "errors": 0,
    "config": 0,
    "arrays": 0,
    "bars": 0,
    "cgroups": 0,
    "child_processes": 0,
    "compiled": 0,
    "deadlines": 0,
    "drawing": 0,
    "extras": 0,
    "faces": 0,
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
ENVIRONMENT = {"environ", "getenv"}
READING_ENVIRONMENT = {"cluster/ray.py", "collection/homes.py"}
"""Ray takes some settings from the environment only; KLSA_COLLECTIONS holds for Python as well."""


def imports_of(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def test_every_room_has_a_floor():
    assert {room_of(path) for path in modules()} == set(FLOORS)


def test_rooms_import_lower_floors_only():
    offences = []
    for path in modules():
        room = room_of(path)
        for name, level in imports_of(path):
            if level:
                offences.append(f"{path}: relative import of {name}")
            if not name.startswith("klsa_search."):
                continue
            other = name.split(".")[1]
            bridge = (path.relative_to(PACKAGE).as_posix(), other) in BRIDGES
            if other != room and FLOORS[other] >= FLOORS[room] and FLOORS[room] > 0 and not bridge:
                offences.append(f"{path}: {room} imports {other}")
    assert not offences


def test_what_a_face_has_is_taken_from_it():
    """A room may reach past the face of another, but not for a name that stands on it."""
    offences = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            package, *inner = node.module.split(".")
            if package != "klsa_search" or len(inner) < 2 or inner[0] == room_of(path):
                continue
            face = importlib.import_module(f"klsa_search.{inner[0]}")
            for alias in node.names:
                if alias.name in face.__all__:
                    offences.append(f"{path}:{node.lineno}: {alias.name} from {node.module}")
    assert not offences


def test_what_lies_beside_the_package_is_not_imported_by_it():
    offences = []
    strangers = {"klsa_search": {"benchmarks", "studies"}, "studies": {"benchmarks"}}
    for folder, strange in strangers.items():
        for path in sorted((PACKAGE.parent / folder).rglob("*.py")):
            taken = {name.split(".")[0] for name, _ in imports_of(path)}
            offences += [f"{path}: imports {other}" for other in sorted(taken & strange)]
    assert not offences


def test_floors_below_the_top_print_nothing_and_read_no_environment():
    offences = []
    for path in modules():
        if room_of(path) in ("cli", "service"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name) and node.id == "print":
                offences.append(f"{path}:{node.lineno}: print")
            allowed = path.relative_to(PACKAGE).as_posix() in READING_ENVIRONMENT
            if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT and not allowed:
                offences.append(f"{path}:{node.lineno}: environment")
    assert not offences
