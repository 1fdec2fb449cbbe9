"""Candidates of tuning: settings that are tried, and their scores on every query.

Random search, not a grid: of these seven settings few matter on any one collection, and a grid
spends its budget on repeating the values of those few while it walks through the others
[Bergstra & Bengio, JMLR 13, 2012]. A budget is also something a user can wait for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Query
from klsa_search.core.config import Settings
from klsa_search.core.progress import Progress
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import rank_best
from klsa_search.indexing.rewrite import build_like
from klsa_search.indexing.sizes import layout
from klsa_search.search.index import Index

LENGTHS = ((0.9, 0.4), (1.2, 0.4), (1.2, 0.75), (1.6, 0.6), (2.0, 0.75))
"""The (k1, b) that are tried besides those of the index; each costs a build."""
TRIALS = 30
"""Candidates at the index's own (k1, b)."""
TRIALS_OF_LENGTHS = 6
"""Candidates at each other (k1, b), and one that changes nothing else."""
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""What is tried without judgements."""

_SPECTRAL = ("exponential", "gvsm", "squashing", "truncation", "von-neumann")
_GAMMAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)  # all below 1, which the von Neumann kernel needs
_WITHOUT_GAMMA = ("gvsm", "truncation")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "spectral": _SPECTRAL,
    "gamma": _GAMMAS,
    "z": (1, 5, 10, 20, 50, 100),
    "sharpness": (1.0, 2.0, 3.0, 5.0, 8.0),
    "alpha": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
}


@dataclass(frozen=True)
class Candidate:
    """Settings to try: the index's own with a few changes; none for the default itself.

    lengths     (k1, b), which a build needs to know
    parameters  parameters of a search; by default those of the index
    """

    lengths: tuple[float, float]
    parameters: Mapping[str, Any]

    def changes(self, settings: Settings) -> dict[str, Any]:
        """Name the settings that differ from these, with their new values."""
        wanted = {"k1": self.lengths[0], "b": self.lengths[1], **self.parameters}
        return {name: value for name, value in wanted.items() if getattr(settings, name) != value}


def draw(settings: Settings, seed: int = 0) -> list[Candidate]:
    """Draw the candidates for an index of these settings; the first is the default, no change.

    Each draw keeps each setting with probability one half: the default is a good place to start
    from, and a change of everything at once rarely helps. Same seed, same candidates; none twice.
    """
    randomness = np.random.default_rng(seed)
    own = (settings.k1, settings.b)
    candidates = []
    for lengths in (own, *(lengths for lengths in LENGTHS if lengths != own)):
        here = [Candidate(lengths, {})]
        trials = TRIALS if lengths == own else TRIALS_OF_LENGTHS
        while len(here) <= trials:
            candidate = Candidate(lengths, _drawn(settings, randomness))
            if candidate not in here:
                here.append(candidate)
        candidates += here
    return candidates


def alphas(settings: Settings) -> list[Candidate]:
    """List the candidates that differ in α alone; the first is the default, no change."""
    own = (settings.k1, settings.b)
    wanted = [{"ranker": "klsa", "alpha": alpha} for alpha in ALPHAS]
    tried = [Candidate(own, parameters) for parameters in wanted]
    return [Candidate(own, {}), *(other for other in tried if other.changes(settings))]


def _drawn(settings: Settings, randomness: np.random.Generator) -> dict[str, Any]:
    drawn: dict[str, Any] = {"ranker": "klsa"}
    for name, values in _CHOICES.items():
        value = _pick(values, randomness)
        drawn[name] = value if randomness.random() < 0.5 else getattr(settings, name)
    if drawn["spectral"] in _WITHOUT_GAMMA:
        drawn["gamma"] = settings.gamma
    elif drawn["spectral"] == "von-neumann" and drawn["gamma"] >= 1:
        drawn["gamma"] = _GAMMAS[-1]
    return {name: value for name, value in drawn.items() if getattr(settings, name) != value}


def _pick(values: Sequence[Any], randomness: np.random.Generator) -> Any:
    return values[int(randomness.integers(len(values)))]


Table = npt.NDArray[np.float64]
"""(Q, C): the value of a measure, one row a judged query, one column a candidate."""


def measure_candidates(
    index: Index,
    candidates: Sequence[Candidate],
    queries: Sequence[Query],
    judge: Judge,
    *,
    progress: Progress | None = None,
) -> Table:
    """Measure each candidate by the first measure of the judge; a query without an answer holds 0.

    `progress` gets ("candidates", done, total). Cost: C runs over the queries, and a build in
    a folder that goes away for each (k1, b) that is not the index's own, and for its own where
    the index keeps D cut, which knows one spectral function only. Such builds hold no D: a
    candidate is searched in its factors. OSError if there is no room for them.
    """
    own = (index.settings.k1, index.settings.b)
    cut = layout(len(index), index.settings) == "sparse"
    judged = frozenset(judge.query_ids)
    asked = [query for query in queries if query.id in judged]
    table = np.zeros((len(judge.query_ids), len(candidates)))
    done = 0
    with tempfile.TemporaryDirectory(prefix="klsa-tune-") as home:
        for lengths in dict.fromkeys(candidate.lengths for candidate in candidates):
            k1, b = lengths
            searched = (
                index
                if lengths == own and not cut
                else build_like(
                    index, home=Path(home), name="candidate", k1=k1, b=b, expansion="factored"
                )
            )
            for column, candidate in enumerate(candidates):
                if candidate.lengths == lengths:
                    run = rank_best(searched, asked, **candidate.parameters)
                    table[:, column] = judge.measure(run).values(judge.measures[0])
                    done += 1
                    if progress is not None:
                        progress("candidates", done, len(candidates))
            if searched is not index:
                searched.close()
    return table
