"""Memory of restricted views: what depends on all documents exists once."""

import gc
import random
import tracemalloc
from contextlib import closing

import pytest

from klsa_search import build
from klsa_search.search.state.restricted_state import bytes_of
from klsa_search.search.state.state import open_state

DOCUMENTS = 3_000
TENANTS = 30


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghiklmnoprstu", k=7)) for _ in range(4_000)]
    documents = (
        {
            "id": str(number),
            "title": " ".join(chance.choices(words, k=3)),
            "text": " ".join(chance.choices(words, k=40)),
            "tenant": f"t{number % TENANTS}",
            "year": chance.randrange(1990, 2020),
        }
        for number in range(DOCUMENTS)
    )
    home = tmp_path_factory.mktemp("views")
    with build(documents, name="views", home=home, dimensions=8) as index:
        yield index


def use(index, words):
    """Send one request of each kind."""
    index.search(words, quality=True, highlight=True, filter="year > 2000")
    index.search(f"{words[:6]}q")
    index.suggest(words[:2])


def test_views_share_what_depends_on_all_documents(index):
    for number in range(2):
        view = index.restricted(f"tenant = t{number}")
        title = next(iter(view.live_documents())).title
        assert view.search(title).hits
        for name in ("neighbours", "latent", "kernel"):
            assert getattr(view.arrays, name) is getattr(index.arrays, name)


@pytest.mark.slow
def test_the_cache_counts_the_memory_of_views(index):
    title = next(iter(index.live_documents())).title
    use(index, title)
    use(index.restricted("tenant = t0"), title)
    gc.collect()
    tracemalloc.start()
    views = [index.restricted(f"tenant = t{number}") for number in range(1, TENANTS)]
    for view in views:
        use(view, title)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] / len(views)
    tracemalloc.stop()
    with closing(open_state(index.path)) as state:
        counted = bytes_of(state)
    assert 0.5 * counted < used < 1.25 * counted
