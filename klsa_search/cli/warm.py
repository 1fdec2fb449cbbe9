"""klsa-index warm: compile the engine ahead of its first use."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.main import debug_option, watch_compiling
from klsa_search.cli.output import echo

if TYPE_CHECKING:
    from klsa_search.search.index import Index

_DOCUMENTS = 70
_WIDE = 500
_PRESETS = ("default", "paper")


@click.command()
@debug_option
def warm() -> None:
    """Compile the engine, once per machine.

    This covers building, searching and serving, and takes half a minute to two minutes. Code that
    is compiled already is not compiled again.
    """
    begin = time.monotonic()

    def report(folder: str | None) -> None:
        where = f"once per machine, into {folder}" if folder else "no cache folder is writable"
        echo(f"compiling the engine ({where}) ...")

    with watch_compiling(report) as compiled:
        _compile_all()
    seconds = time.monotonic() - begin
    echo(f"compiled {compiled.functions} functions in {seconds:.1f} s")


def compile_writing() -> None:
    """Compile what writes need, by building a small index and writing to it.

    Takes about 10 s of processor time, and half a minute more if builds were never compiled.
    """
    from klsa_search.indexing.build import build

    with (
        tempfile.TemporaryDirectory(prefix="klsa-warm-") as home,
        closing(build(_documents(), name="some", home=Path(home))) as index,
    ):
        write(index)


def write(index: Index) -> None:
    """Add and delete documents, then open the index again."""
    from klsa_search.search.opening import open_index

    index.add([{**one, "id": f"later {one['id']}"} for one in _documents(2 * _DOCUMENTS)])
    index.delete(["3"])
    open_index(index.path.parent).close()


def _documents(count: int = _DOCUMENTS) -> list[dict[str, str]]:
    return [
        {"id": str(n), "text": " ".join(f"word{n % m} word{n // m}" for m in range(2, 12))}
        for n in range(count)
    ]


def _compile_all() -> None:
    """Build and query a small index of each preset, and run the block eigensolver."""
    import numpy as np
    from scipy import sparse

    from klsa_search.indexing.build import build
    from klsa_search.kernels.document_kernel import DocumentKernel
    from klsa_search.lowrank.eigensolver import decompose
    from klsa_search.search.rankers import needs_eigenvectors

    with tempfile.TemporaryDirectory(prefix="klsa-warm-") as home:
        for preset in _PRESETS:
            index = build(_documents(), name=preset, home=Path(home), preset=preset)
            with closing(index):
                _query_all(index)
                if not needs_eigenvectors(index.settings):
                    write(index)
                    _query_all(index)
    random = np.random.default_rng(0)
    features = sparse.csr_array(random.random((_WIDE, _WIDE), np.float32))
    decompose(DocumentKernel(features, np.ones(_WIDE), np.zeros(_WIDE)), 1)


def _query_all(index: Index) -> None:
    """Run each operation of the service and the commands on an index."""
    from klsa_search.errors import QueryError
    from klsa_search.mining.classification import classify, classify_texts
    from klsa_search.mining.clusters import cluster
    from klsa_search.mining.duplicates import duplicates
    from klsa_search.mining.map import document_map
    from klsa_search.mining.related_terms import related
    from klsa_search.mining.similar import KERNELS, similar
    from klsa_search.search.rankers import RANKERS

    index.warm_up()
    labels = {"1": "one", "2": "two"}
    calls: list[Callable[[], object]] = [
        *(
            partial(index.search, "word1 word2", ranker=ranker, exact=exact)
            for ranker in RANKERS
            for exact in (False, True)
        ),
        partial(index.search, "word1", boosts={"title": 2}),
        *(partial(similar, index, "1", kernel=kernel) for kernel in KERNELS),
        partial(index.suggest, "word1 word"),
        partial(related, index, "word1"),
        partial(classify, index, labels),
        partial(classify_texts, index, labels, ["word1"]),
        partial(duplicates, index),
        partial(cluster, index, 2),
        partial(document_map, index),
    ]
    for call in calls:
        with suppress(QueryError):  # not supported after writes
            call()
