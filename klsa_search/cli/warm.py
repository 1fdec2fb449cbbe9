"""klsa-index warm: compile what building, searching and serving need, before anybody waits."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from klsa_search.cli.compiling import watch_compiling
from klsa_search.cli.frame import debug_option

_DOCUMENTS = 70
_WIDE = 500


@click.command()
@debug_option
def warm() -> None:
    """Compile all that building, searching and serving need, once on this machine.

    Takes half a minute to two; what was compiled before is not compiled again. A container image
    has it done while it is built.
    """
    begun = time.monotonic()

    def told(folder: str | None) -> None:
        click.echo(f"compiling, once on this machine, into {folder or 'memory alone'} ...")

    with watch_compiling(told) as compiled:
        _use_everything()
    seconds = time.monotonic() - begun
    click.echo(f"{compiled.functions} functions compiled; all ready after {seconds:.1f} s")


def build_a_few(layouts: Sequence[str] = ("cut",), *, search: bool = False) -> None:
    """Build a few documents in some layouts, and search them."""
    from klsa_search.indexing import build

    documents = [
        {"id": str(n), "text": " ".join(f"word{n % m} word{n // m}" for m in range(2, 12))}
        for n in range(_DOCUMENTS)
    ]
    with tempfile.TemporaryDirectory(prefix="klsa-warm-") as home:
        for expansion in layouts:
            index = build(documents, name=expansion, home=Path(home), expansion=expansion)
            if search:
                index.warm_up()
                index.search("word1 word2", exact=True)
            index.close()


def _use_everything() -> None:
    """Build and search a few documents in every layout, and solve a spectrum by blocks."""
    import numpy as np
    from scipy import sparse

    from klsa_search.kernel import DocumentKernel
    from klsa_search.spectrum import decompose

    build_a_few(("cut", "whole"), search=True)
    random = np.random.default_rng(0)
    features = sparse.csr_array(random.random((_WIDE, _WIDE), np.float32))
    decompose(DocumentKernel(features, np.ones(_WIDE), np.zeros(_WIDE)), 1)
