"""A browser, the real service, and checks for errors of the page."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from klsa_search.indexing.build import build
from klsa_search.mining.similar import similar
from klsa_search.search.index import open_index
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.sockets import serving
from tests.support.browsers import open_browser

from .notes import notes

LONG = 60_000  # ms


def pytest_collection_modifyitems(items):
    """One worker runs a module, so that it has one browser; the other need not wait at the end."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(f"browser-{item.path.stem}"))


@pytest.fixture(scope="session", autouse=True)
def _patience(patient_service):
    pass


@pytest.fixture(scope="package")  # its event loop is in the way of whoever starts one
def browser():
    from playwright.sync_api import expect

    expect.set_options(timeout=LONG)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def notes_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("notes")
    build(notes(), name="notes", home=home).close()
    return home


@pytest.fixture
def home(notes_home, tmp_path):
    """A home of the test's own."""
    return shutil.copytree(notes_home, tmp_path / "home")


@pytest.fixture(scope="session")
def address(notes_home):
    """Of the service, once each kind of question was answered: what compiles is compiled."""
    index = open_index(notes_home / "notes")
    for ranker in ("klsa", "bm25"):
        wishes = {"facets": ["kind"], "sort": ["year"], "filter": "year > 1980"}
        index.search("car harb", ranker=ranker, highlight=True, quality=True, **wishes)
        index.search("car", ranker=ranker, explain=True)
    index.search("car", positive=["rose"], negative=["lawn"])
    index.suggest("har")
    for kernel in ("latent", "document"):
        similar(index, "rose", kernel=kernel)
    index.close()
    with OpenIndexes(notes_home) as open_indexes, serving(open_indexes) as served:
        yield f"http://127.0.0.1:{served.address[1]}"


@contextmanager
def watched(browser, address, *, expected=(), tools=True, **options):
    """A page of its own that asks no other host, and whose console stays silent.

    expected  what a line of the console may hold: failures that the test itself brings about
    tools     whether the tools are open, as a visitor has left them
    """
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(LONG)
    if tools:
        context.add_init_script(
            "sessionStorage.opened ??= (localStorage.setItem('klsa-tools', 'open'), 1)"
        )
    elsewhere, wrong = [], []
    ours = urlsplit(address).netloc

    def routed(route):
        if urlsplit(route.request.url).netloc == ours:
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    context.route("**/*", routed)
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None,
    )
    try:
        yield page
    finally:
        hacked = page.evaluate("'hacked' in window")
        context.close()
    assert not elsewhere
    assert not hacked
    assert not [each for each in wrong if not any(part in each for part in expected)]


def until(page, condition):
    """Let the page go on until that holds."""
    for _ in range(LONG // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("what was waited for has not come")


@pytest.fixture
def page(browser, address):
    with watched(browser, address) as opened:
        opened.goto(address)
        yield opened
