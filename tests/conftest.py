"""Fixtures shared by the tests of all packages."""

import gc
import json
import os
import re
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase
from py3langid.langid import LanguageIdentifier

from klsa_search import Index, _native, build, open_index
from tests.support.disk import at_once, syncing_by
from tests.support.parsing import one_process
from tests.support.waiting import PATIENCE

pytest_plugins = ["pytester", "tests.support.processor_time", "tests.support.skips"]

ROOT = Path(__file__).parent.parent


# What is kept in the cache folder of whoever runs the tests stays as it is.
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".pytest_cache" / "user")

# Folders of tests are in memory where there is room: they get a quarter of a million small files,
# each of which costs up to 0.2 ms of processor time on a disk, and 10 µs there.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2**32:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Children keep bytecode even if the environment says not to: many tests start Python.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Fresh examples in every run: those that failed are kept in the cache, tried first next time, and
# printed with what repeats them elsewhere. How long one takes says only how busy the machine is.
set_hypothesis_home_dir(ROOT / ".pytest_cache" / "hypothesis")
settings.register_profile(
    "short",
    max_examples=25,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(ROOT / ".pytest_cache" / "hypothesis" / "examples"),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("long", settings.get_profile("short"), max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


_EXCLUDING = re.compile(r"not \w+(?: and not \w+)*")
_MARKED = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.(\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module that `-m` excludes as a whole: each worker of `make test` needs 360 of 420.

    These 60 import a browser and the studies, and have most of the cases that are not chosen.
    """
    excluding = config.getoption("markexpr")
    if collection_path.suffix != ".py" or not _EXCLUDING.fullmatch(excluding):
        return None
    marked = _MARKED.search(collection_path.read_text(encoding="utf-8"))
    return True if marked and f"not {marked[1]}" in excluding.split(" and ") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that wait for processes, and let no process of the tests wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("smoke") is None)


def pytest_collection_finish() -> None:
    """Leave tests and modules out of garbage collections, which took 0.4 s each with them.

    And collect as seldom as a service, and what is old ten times more seldom: by default, a
    twentieth of the processor time went there.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Where durability is the subject, package fixtures set it right; other processes wait."""
    with syncing_by(at_once):
        yield


@pytest.fixture(scope="session", autouse=True)
def model_of_languages() -> Iterator[None]:
    """Load it once, and classify a text once: 0.4 s, and 0.2 ms for each text of a build."""
    load = staticmethod(cache(LanguageIdentifier.from_model_file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageIdentifier, "from_model_file", load)
        patch.setattr(LanguageIdentifier, "classify", cache(LanguageIdentifier.classify))
        yield


@pytest.fixture(scope="session", autouse=True)
def partitions_of_this_process() -> Iterator[None]:
    """Build partitions here unless a test says how many workers: a process takes 0.5 s to begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klsa_search.indexing.partitions.processors", lambda: 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates() -> Iterator[None]:
    """Read those of the clients once: 30 ms for each client without a transport of the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def parser_of_files() -> Iterator[None]:
    """Sandboxes are tested as they are; all other tests share a process."""
    with one_process():
        yield


@pytest.fixture(scope="session")
def patient_service() -> Iterator[None]:
    """Services that say nothing else wait as long as it takes: a slow machine is no fault."""
    from klsa_search.service.admission import Admission, Writes

    with pytest.MonkeyPatch.context() as patch:
        for kind in (Admission, Writes):
            for name in ("queue_timeout", "request_timeout"):
                patch.setitem(kind.__init__.__kwdefaults__, name, 10 * PATIENCE)
        yield


@pytest.fixture(scope="module")
def quick_calibration() -> Iterator[None]:
    """Fit the quality of matches to a tenth of the queries, which takes 0.2 s for each index."""
    from klsa_search.search.explain import quality

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "QUERIES", 30)
        yield


@pytest.fixture(scope="module")
def index_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Index]]:
    """Return an index of texts or records, which tests of a module share: none writes to it.

    IDs of texts are the keys of a mapping, or count from 0.
    """
    home, opened = tmp_path_factory.mktemp("indexes"), {}

    def index_of(texts: Any, *, name: str = "shared", **settings: Any) -> Index:
        items = texts.items() if isinstance(texts, dict) else enumerate(texts)
        records = [
            each if isinstance(each, dict) else {"id": str(id_), "text": each}
            for id_, each in items
        ]
        key = json.dumps([records, name, settings])
        if key not in opened:
            opened[key] = build(records, name=name, home=home / str(len(opened)), **settings)
        return opened[key]

    yield index_of
    for index in opened.values():
        index.close()


@pytest.fixture
def copy_of(index_of: Callable[..., Index], tmp_path: Path) -> Iterator[Callable[..., Index]]:
    """Return a copy of what `index_of` builds, which the test may change."""
    with ExitStack() as opened:

        def copy_of(texts: Any, **settings: Any) -> Index:
            path = index_of(texts, **settings).path.parent
            return opened.enter_context(open_index(shutil.copytree(path, tmp_path / path.name)))

        yield copy_of


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A port that refuses connections, and stays taken so that nothing else begins to listen."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def kept_port() -> Iterator[int]:
    """A port for a server that reuses addresses; nothing else gets it meanwhile."""
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(scope="session")
def collections_home() -> Path:
    """Folder with cran, cisi, cacm and med, where there is one."""
    named = os.environ.get("KLSA_COLLECTIONS")
    home = ROOT / named if named else ROOT.parent / "shared" / "collections"
    if not (home / "cran").is_dir():
        pytest.skip(
            f"the SMART collections are not at {home}; name their folder in KLSA_COLLECTIONS"
        )
    return home


@pytest.fixture(scope="session")
def datasets_home() -> Path:
    """Folder with ionosphere and reuters21578, where there is one."""
    named = os.environ.get("KLSA_DATASETS")
    home = ROOT / named if named else ROOT.parent / "shared" / "datasets"
    if not (home / "ionosphere").is_dir():
        pytest.skip(f"the data sets are not at {home}; name their folder in KLSA_DATASETS")
    return home


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def instruction_set(request):
    """Run the test on every instruction set that this processor has."""
    if request.param not in _native.instruction_sets():
        pytest.skip(f"the processor does not have it: {request.param}")
    previous = _native.select_instruction_set(request.param)
    yield request.param
    _native.select_instruction_set(previous)
