"""The shards of one state of an index, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.asking import Replicas, ask
from klsa_search.cluster.host import packed
from klsa_search.cluster.messages import Candidates, Found, Known, Scored, Wanted
from klsa_search.cluster.shard import Share
from klsa_search.cluster.tally import current_tally
from klsa_search.store.log_format import Last

_turn = count()


class LiveShards:
    """Asks replicas, for the state of some writes; see `spread.Shards`.

    built  positions of the build
    """

    def __init__(self, replicas: Replicas, built: int, last: Last) -> None:
        self._replicas, self._last = replicas, last
        self.shares = [Share(built, each, replicas.shards) for each in range(replicas.shards)]

    def best(
        self, wanted: Sequence[Wanted], masks: Sequence[npt.NDArray[np.bool_]] | None
    ) -> list[list[Found]]:
        """Ask the first round; without the shards that give no answer, where one may."""

        def fits(shard: int, answer: Any) -> bool:
            return _each(answer, Found, len(wanted)) and all(
                len(found.documents) <= query.results
                and self._has(shard, found.documents)
                and self._has(shard, found.allowed_documents)
                and len(found.saturations) == min(len(found.documents), query.best)
                for query, found in zip(wanted, answer, strict=True)
            )

        arguments = [
            (self._last, wanted, None if masks is None else packed(masks[shard]))
            for shard in range(len(self.shares))
        ]
        return self._asked("best", arguments, fits)

    def scores(
        self,
        known: Sequence[Known],
        asked: Sequence[Sequence[Candidates]],
    ) -> list[list[Scored]]:
        """Ask the second round, of shards that answered the first."""

        def fits(shard: int, answer: Any) -> bool:
            return _each(answer, Scored, len(known)) and all(
                self._has(shard, scored.documents)
                and len(scored.documents) == len(scored.scores) == len(scored.compared)
                for scored in answer
            )

        missing = current_tally().failed
        arguments = [
            None if shard in missing else (self._last, known, asked[shard])
            for shard in range(len(self.shares))
        ]
        return self._asked("scores", arguments, fits)

    def _has(self, shard: int, documents: npt.NDArray[np.integer]) -> bool:
        return bool(self.shares[shard].holds(documents).all())

    def _asked(self, method: str, arguments: Sequence[Any], fits: Any) -> list[Any]:
        answers = ask(
            self._replicas, method, arguments, fits, first=next(_turn) % self._replicas.replicas
        )
        current_tally().note(len(self.shares), answers.failed)
        return [answers.given[shard] for shard in sorted(answers.given)]


def _each(answer: Any, kind: type, count: int) -> bool:
    """Whether an answer is a list of so many of a kind."""
    return (
        isinstance(answer, list)
        and len(answer) == count
        and all(isinstance(each, kind) for each in answer)
    )
