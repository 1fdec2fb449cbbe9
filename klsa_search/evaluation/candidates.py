"""Candidates of tuning: combinations of settings, and their values for every query.

Random search instead of a grid: only few of these settings matter for a collection, and a grid
repeats their few values for all values of the others [Bergstra & Bengio, JMLR 13, 2012].
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Topic
from klsa_search.core.config import Settings
from klsa_search.core.progress import Progress
from klsa_search.evaluation.measures import Judge, rank_best
from klsa_search.indexing.rewrite import build_like
from klsa_search.search.index import Index
from klsa_search.search.rankers import needs_eigenvectors

LENGTHS = ((0.9, 0.4), (1.2, 0.4), (1.2, 0.75), (1.6, 0.6), (2.0, 0.75))
"""Values of (k1, b) to try besides those of the index; each costs a build."""
TRIALS = 30  # candidates with the (k1, b) of the index
TRIALS_OF_LENGTHS = 6  # candidates with each other (k1, b), besides one without further changes
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # values of α to try without judgements
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
    """Settings to try: changes to those of the index; none for the default.

    lengths     (k1, b), which require a build
    parameters  parameters of a search; by default those of the index
    """

    lengths: tuple[float, float]
    parameters: Mapping[str, Any]

    def changes(self, settings: Settings) -> dict[str, Any]:
        """Return the settings that differ from these, with their new values."""
        chosen = {"k1": self.lengths[0], "b": self.lengths[1], **self.parameters}
        return {name: value for name, value in chosen.items() if getattr(settings, name) != value}


def draw(settings: Settings, seed: int = 0) -> list[Candidate]:
    """Return random candidates for an index with these settings; the first changes nothing.

    Each setting is unchanged with probability one half, because changing all at once rarely helps.
    No candidate occurs twice. The result is deterministic for a seed.
    """
    generator = np.random.default_rng(seed)
    defaults = (settings.k1, settings.b)
    candidates = []
    for lengths in (defaults, *(lengths for lengths in LENGTHS if lengths != defaults)):
        here = [Candidate(lengths, {})]
        trials = TRIALS if lengths == defaults else TRIALS_OF_LENGTHS
        while len(here) <= trials:
            candidate = Candidate(lengths, _drawn(settings, generator))
            if candidate not in here:
                here.append(candidate)
        candidates += here
    return candidates


def alphas(settings: Settings) -> list[Candidate]:
    """Return the candidates that differ in α alone; the first changes nothing."""
    defaults = (settings.k1, settings.b)
    parameters = [{"ranker": "klsa", "alpha": alpha} for alpha in ALPHAS]
    tried = [Candidate(defaults, parameter) for parameter in parameters]
    return [Candidate(defaults, {}), *(other for other in tried if other.changes(settings))]


def _drawn(settings: Settings, generator: np.random.Generator) -> dict[str, Any]:
    drawn: dict[str, Any] = {"ranker": "klsa"}
    for name, values in _CHOICES.items():
        value = values[int(generator.integers(len(values)))]
        drawn[name] = value if generator.random() < 0.5 else getattr(settings, name)
    if drawn["spectral"] in _WITHOUT_GAMMA:
        drawn["gamma"] = settings.gamma
    elif drawn["spectral"] == "von-neumann" and drawn["gamma"] >= 1:
        drawn["gamma"] = _GAMMAS[-1]
    return {name: value for name, value in drawn.items() if getattr(settings, name) != value}


Table = npt.NDArray[np.float64]
"""(Q, C): values of a measure, one row per judged query, one column per candidate."""


def measure_candidates(
    index: Index,
    candidates: Sequence[Candidate],
    queries: Sequence[Topic],
    judge: Judge,
    *,
    progress: Progress | None = None,
) -> Table:
    """Return the first measure of the judge for each candidate; 0 for a query without results.

    progress  called with ("candidates", done, total)
    Cost: C runs of the queries, and a build in a temporary folder for each other (k1, b), also for
    that of the index if a candidate needs eigenvectors that it does not have. Raise OSError on a
    full disk.
    """
    settings = index.settings
    tried = (settings.model_copy(update=dict(candidate.parameters)) for candidate in candidates)
    # A build with truncation stores all eigenvectors, so that any other function can be chosen.
    is_changed = any(map(needs_eigenvectors, tried)) and not needs_eigenvectors(settings)
    spectral = "truncation" if is_changed else settings.spectral
    defaults = (settings.k1, settings.b)
    judged = judge.judged(queries)
    table = np.zeros((len(judge.query_ids), len(candidates)))
    done = 0
    with tempfile.TemporaryDirectory(prefix="klsa-tune-") as home:
        for lengths in dict.fromkeys(candidate.lengths for candidate in candidates):
            k1, b = lengths
            searched = (
                index
                if lengths == defaults and not is_changed
                else build_like(
                    index, home=Path(home), name="candidate", k1=k1, b=b, spectral=spectral
                )
            )
            for column, candidate in enumerate(candidates):
                if candidate.lengths == lengths:
                    parameters = {"spectral": settings.spectral, **candidate.parameters}
                    run = rank_best(searched, judged, **parameters)
                    table[:, column] = judge.measure(run).values(judge.measures[0])
                    done += 1
                    if progress is not None:
                        progress("candidates", done, len(candidates))
            if searched is not index:
                searched.close()
    return table
