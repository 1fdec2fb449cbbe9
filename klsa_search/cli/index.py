"""klsa-index: build and maintain indexes."""

from __future__ import annotations

from functools import partial

from klsa_search.cli import (  # noqa: F401 - they add their commands to the group
    build,
    documents,
    maintenance,
    mine,
    queries,
    sync,
    tune,
)
from klsa_search.cli.main import klsa_index, run

__all__ = ["klsa_index", "main"]

main = partial(run, klsa_index)
