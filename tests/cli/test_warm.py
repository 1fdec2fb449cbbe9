"""After klsa-index warm nothing is left to compile."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from klsa_search.service.routes.fetch import router as fetch
from klsa_search.service.routes.mining import router as mining
from klsa_search.service.routes.search import router
from klsa_search.service.routes.suggest import router as suggesting
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.slow

ASKED = {
    "/", "/health", "/health/live", "/health/ready", "/indexes", "/indexes/{name}", "/search",
    "/multi-search", "/indexes/{name}/search",
    "/documents/{id:whole}", "/indexes/{name}/documents/{id:whole}",
    "/suggest", "/indexes/{name}/suggest",
    "/indexes/{name}/documents/{id:whole}/similar", "/indexes/{name}/terms/{term:whole}/related",
    "/indexes/{name}/documents/{id:whole}/terms",
    "/indexes/{name}/classify", "/indexes/{name}/map",
    "/metrics", "/indexes/{name}/explain/{id:whole}",
}  # fmt: skip

SCRIPT = """
import gc, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from starlette.testclient import TestClient
from klsa_search.cli.warm import _compile_all
from klsa_search.core.config import PRESETS
from klsa_search.indexing.build import build
from klsa_search.mining import KERNELS
from klsa_search.search.opening import open_index
from klsa_search.search.rankers import RANKERS
from klsa_search.service.catalog import Catalog; from klsa_search.service.app import create_app

def ready():
    return {
        (each.py_func.__module__, each.py_func.__qualname__, str(signature))
        for each in gc.get_objects() if isinstance(each, Dispatcher)
        and each.py_func.__module__.startswith("klsa_search")
        for signature in each.signatures
    }

_compile_all()
warmed = ready()
words = [f"word{n}" for n in range(40)]
documents = [
    {"id": str(n), "title": words[n % 40],
     "text": " ".join(words[(n * m) % 40] for m in range(1, 9)) + (" rare" if n == 7 else "")}
    for n in range(90)
]
home = Path(sys.argv[1])
for preset in PRESETS:
    build(documents, name=preset, home=home, preset=preset).close()
build(documents, name="written", home=home).close()
written = open_index(home / "written")
written.add([{**one, "id": f"later {at}"} for at, one in enumerate(documents * 2)])
written.add([{"id": "2", "text": "word1 unheard"}])
written.delete(["25", "later 7"])
written.close()
with Catalog(home) as catalog:
    client = TestClient(create_app(catalog))
    def ask(path, **body):
        answer = client.post(path, json=body) if body else client.get(path)
        assert answer.status_code in (200, 422), (path, answer.text)
    for path in ("/", "/health", "/health/live", "/health/ready", "/metrics", "/indexes"):
        ask(path)
    for name in sorted(path.name for path in home.iterdir()):
        ask(f"/indexes/{name}")
        ask(f"/indexes/{name}/explain/1?q=word1")
        ask("/multi-search", queries=[{"q": "word1", "index": name, "positive": ["1"]}])
        ask(f"/indexes/{name}/search", q="word1", filter={"field": "year", "exists": False})
        ask(f"/documents/1?index={name}")
        ask(f"/indexes/{name}/documents/1")
        ask(f"/suggest?index={name}&q=word1 word")
        for query in ("word1", "word1 word1 word2 rare", " ".join(words), "", "unknown"):
            for ranker in RANKERS:
                for more in ("", "&exact=true", "&k=1000", "&z=1000", "&alpha=0", "&coverage=0",
                             "&latent=0", "&spectral=exponential", "&dimensions=3", "&head=1",
                             "&unit_length=false"):
                    ask(f"/search?index={name}&q={query}&ranker={ranker}{more}")
        for kernel in KERNELS:
            for k in (1, 40, 1000):
                ask(f"/indexes/{name}/documents/1/similar?kernel={kernel}&k={k}")
        ask(f"/indexes/{name}/documents/1/terms")
        ask(f"/indexes/{name}/terms/word1 word2/related?k=100")
        ask(f"/indexes/{name}/map")
        ask(f"/indexes/{name}/map", ids=["1", "30"])
        labels = {str(n): str(n % 3) for n in range(20)}
        for more in ({}, {"ids": ["30", "31"]}, {"texts": ["word1 word2", "", "unknown"]}):
            ask(f"/indexes/{name}/classify", labels=labels, **more)
missing = ready() - warmed
assert not missing, sorted(missing)
assert len(warmed) > 30, len(warmed)
"""


def warmed():
    command = [sys.executable, "-c", "from klsa_search.cli.index import main; main()", "warm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return int(re.search(r"^compiled (\d+) functions", done.stdout, re.MULTILINE)[1])


def test_what_was_compiled_is_not_compiled_again():
    warmed()
    assert warmed() == 0


def test_no_endpoint_needs_what_warming_has_not_compiled(tmp_path):
    """Whatever is kept on this machine already: what is made ready in one process is compared."""
    routers = (router, mining, suggesting, fetch)
    paths = {route.path for each in routers for route in each.routes}
    not_compiled = {"/indexes/{name}/analyze", "/indexes/{name}/facet-search"}
    assert paths - not_compiled <= ASKED
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
