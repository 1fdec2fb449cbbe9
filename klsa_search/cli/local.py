"""An index of this machine, as klsa-search asks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from klsa_search.cli.beside import MODULE

if TYPE_CHECKING:
    from klsa_search.collection import Query
    from klsa_search.evaluation.record import RunRecord
    from klsa_search.evaluation.runs import Ranking
    from klsa_search.search.explaining import Explanation
    from klsa_search.search.results import SearchResults

_FEW: Final = 100
"""Hits up to which the slower ways answer before numba is loaded."""


class LocalIndex:
    """The index `name` of a home; a batch is worked on by so many threads."""

    def __init__(self, home: Path, name: str, threads: int) -> None:
        from klsa_search.search.opening import open_index
        from klsa_search.store.names import index_path

        self._index = open_index(index_path(home, name))
        self._threads = threads

    def search(
        self, query: str, k: int, options: Mapping[str, Any]
    ) -> tuple[str, str, SearchResults]:
        """Name, generation and what was found. See `Index.search`."""
        from klsa_search.compiling import compile_in_child, do_without

        if k <= _FEW:
            do_without()
        else:
            compile_in_child(MODULE)
        found = self._index.search(query, k, **options)
        return self._index.name, self._index.generation, found

    def explain(
        self, query: str, id_: str, options: Mapping[str, Any]
    ) -> tuple[str, str, Explanation]:
        """Name, generation and how a score came about. See `Index.explain`."""
        from klsa_search.compiling import do_without

        do_without()
        found = self._index.explain(query, id_, **options)
        return self._index.name, self._index.generation, found

    def ranker(self, options: Mapping[str, Any]) -> str:
        """Return the name of the ranker that these options ask for."""
        return options.get("ranker") or self._index.settings.ranker

    def rankings(
        self, queries: Sequence[Query], k: int, options: Mapping[str, Any]
    ) -> Iterator[Ranking]:
        """Rank for every query, some thousand in memory at a time."""
        from klsa_search.evaluation.rankings import rank_best

        return rank_best(self._index, queries, k, threads=self._threads, **options)

    def record(self, queries: Path, run: Path, k: int, options: Mapping[str, Any]) -> RunRecord:
        """Write the run of a file of queries, and say all that it follows from."""
        from klsa_search.evaluation.record import record_run

        return record_run(self._index, queries, run, k, threads=self._threads, **options)
