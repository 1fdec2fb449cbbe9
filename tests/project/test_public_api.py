"""Public names keep their signatures, and their examples run."""

import doctest
import inspect
import json
import re
import shutil
from collections import defaultdict
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import klsa_search as klsa
from klsa_search.errors import MissingExtra
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.jobs import Jobs
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.sockets import serving
from tools import public_api

REPORTS = [
    ("heat", "Overheating", "An engine that overheats has lost coolant, or its pump has failed."),
    ("pump", "Pump", "A worn pump moves too little coolant: the needle climbs into the red."),
    ("leak", "Leaks", "Coolant leaks from old hoses; look for stains below the pump."),
    ("tyre", "Tyres", "Bald tyres slip on wet roads."),
    ("grip", "Grip", "Wet roads and bald tyres ask for longer distances."),
    ("copy", "Tyres again", "Bald tyres slip on wet roads."),
]
METADATA = {
    "heat": {"year": 2021, "seen": "2024-02-01", "about": ["engines", "pumps"]},
    "pump": {"year": 2019, "seen": "2024-03-05", "about": "pumps"},
    "leak": {"year": 2024, "seen": "2024-03-31T18:00:00Z", "about": "hoses"},
    "tyre": {"year": 2018, "seen": "2024-04-01", "about": "tyres"},
    "grip": {"year": 2022, "about": ["tyres", "roads"]},
    "copy": {},
}
PACKAGE = Path(klsa.__file__).parent
USING_FILES = re.compile(r"index|reports|home|url|\.(jsonl|txt|csv)")
"""What examples contain that need the folder."""
FILES = {
    "queries.jsonl": '{"_id": "1", "text": "leaking coolant"}\n',
    "qrels.txt": "1 0 leak 2\n",
    "topics.txt": "<top>\n<num> Number: 301\n<title> wet roads\n</top>\n",
}


def test_no_signature_changes_unseen():
    assert public_api.text() == public_api.TABLE.read_text(encoding="utf-8"), (
        "the public API has changed: if that is meant, run python -m tools.public_api"
    )


def test_the_package_says_what_is_public():
    said = " ".join(klsa.__doc__.split())
    for package, names in public_api.PACKAGES.items():
        room = package.partition(".")[2]
        assert not room or f"`{room}`" in said
        assert all(f"`{name}`" in said for name in names or ())


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with the files of the examples, and the index that the first of them builds."""
    folder = tmp_path_factory.mktemp("world")
    records = [
        {"id": id_, "title": title, "text": text, "metadata": METADATA[id_]}
        for id_, title, text in REPORTS
    ]
    (folder / "reports.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    for name, content in FILES.items():
        (folder / name).write_text(content)
    klsa.build(folder / "reports.jsonl", name="reports", home=folder / "index").close()
    return shutil.copytree(folder, tmp_path_factory.mktemp("kept") / "world"), folder


@cache
def public_names():
    return {
        name: getattr(import_module(package), name)
        for package in public_api.PACKAGES
        for name in public_api.public_names(package)
    }


@contextmanager
def names_of(found, world, monkeypatch):
    """Yield what an example sees: in a world as it was, an open index, counts, the rest."""
    kept, folder = world  # the folder stays the same: an index knows where its source lies
    monkeypatch.chdir(folder.parent)
    counts = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1]])
    names = public_names() | {"klsa": klsa, "np": np, "Path": Path, "counts": counts}
    if not USING_FILES.search(found.docstring):
        yield names
        return
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    monkeypatch.chdir(folder)
    with klsa.open_index("index/reports") as index:
        yield names | {"index": index}


def parts(held):
    """What a public thing is made of here: a class and the classes it builds on."""
    if not inspect.isclass(held):
        return [held]
    return [part for part in held.__mro__ if part.__module__.startswith("klsa_search.")]


@cache
def examples():
    """Every docstring with examples of what is public: (title, doctest)."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    seen = {}
    for package in public_api.PACKAGES:
        module = import_module(package)
        whole = doctest.DocTestParser().get_doctest(module.__doc__ or "", {}, package, None, 0)
        if whole.examples:
            seen[package] = whole
        for name in public_api.public_names(package):
            held = getattr(module, name)
            if callable(held):
                for found in [
                    each for part in parts(held) for each in finder.find(part, f"{package}.{name}")
                ]:
                    if found.examples:
                        member = found.name.removeprefix(f"{package}.{name}")
                        seen.setdefault(f"{held.__module__}.{held.__qualname__}{member}", found)
    return sorted(seen.items())


@cache
def examples_by_module():
    """Every docstring of the package with examples: what is not public sees its module, too."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    public = examples()
    texts = {found.docstring for _, found in public}
    found_in = defaultdict(list)
    for title, found in public:
        found_in[module_of(found) or title].append(found)
    for name in EXAMPLES_IN:
        with suppress(MissingExtra):
            for found in finder.find(import_module(name)):
                if found.examples and found.docstring not in texts:
                    found_in[module_of(found)].append(found)
    return found_in


def module_of(found):
    """The module of an object with examples; None of the docstring of a module."""
    return found.filename and dotted(Path(found.filename))


def dotted(path):
    names = (PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(names).removesuffix(".__init__")


EXAMPLES_IN = [dotted(path) for path in sorted(PACKAGE.rglob("*.py")) if ">>>" in path.read_text()]


@pytest.mark.parametrize("module", EXAMPLES_IN)
def test_examples_run(module, world, monkeypatch):
    assert examples_by_module().keys() <= {*EXAMPLES_IN}
    told = []
    for found in examples_by_module()[module]:
        with names_of(found, world, monkeypatch) as names:
            told += failures_of(found, names)
    assert told == []


def failures_of(found, names):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
    told = []
    runner = doctest.DocTestRunner(optionflags=flags)
    with ExitStack() as stack:
        if any("(url" in example.source for example in found.examples):
            open_indexes = stack.enter_context(OpenIndexes(Path("index"), interval=0))
            jobs = Jobs(open_indexes, ["none"], share=None)  # not started: jobs wait
            recorder = Recorder(Path("index"), days=90, min_searches=2)  # stores nothing
            options = {"writes": Writes(), "jobs": jobs, "recorder": recorder}
            service = stack.enter_context(serving(open_indexes, **options))
            names["url"] = "http://{}:{}".format(*service.address)
        found.globs.update(names)
        runner.run(found, out=told.append, clear_globs=False)
    return told


def shown():
    """All that examples say and print."""
    return "\n".join(
        example.source + example.want for _, found in examples() for example in found.examples
    )


def test_every_public_name_is_in_an_example():
    said = shown()
    missing = [
        f"{package}.{name}"
        for package in public_api.PACKAGES
        if package != "klsa_search.errors"
        for name in public_api.public_names(package)
        if not re.search(rf"\b{name}\b", said)
    ]
    assert missing == [], "show them in the example of a docstring"


def test_every_method_of_an_index_is_in_an_example():
    methods = [
        name
        for part in parts(klsa.Index)
        for name, member in vars(part).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ]
    said = shown()
    missing = [name for name in methods if f"index.{name}" not in said]
    assert missing == [], "show them in the examples of their docstrings"
