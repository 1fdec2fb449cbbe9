"""Comparison of systems with a baseline, query by query.

A query is won or lost if the difference is larger than `TIE`, and tied otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from klsa_search.errors import SettingsError
from klsa_search.evaluation.measures import Measured
from klsa_search.evaluation.significance import (
    SAMPLES,
    Differences,
    confidence_interval,
    effect_size,
    holm,
    paired_t_test,
    randomisation_test,
)

TIE = 0.01
"""Largest difference that counts as a tie; users do not notice it."""

EXTREMES = 5
"""Maximum number of queries in `worst` and in `best`."""

_ROUNDING = 1e-12
"""0.51 - 0.50 is a tie, although its floating-point value is slightly above 0.01."""


@dataclass(frozen=True, kw_only=True)
class AtQuery:
    """Value of one query with the baseline and with the system."""

    query: str
    baseline: float
    value: float


@dataclass(frozen=True, kw_only=True)
class Significance:
    """A p value, and its value after Holm's correction over the systems of the comparison."""

    p: float
    holm: float


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Comparison of one system with the baseline, over the n judged queries.

    gain         relative gain of the mean over that of the baseline; None if the latter is 0
    interval     95% confidence interval of the mean difference: see `confidence_interval`
    effect_size  Cohen's d of the differences; None if it is undefined
    hurt         losses / n
    robustness   (wins - losses) / n, the robustness index [Sakai et al., 2005]
    worst_tenth  mean of the lowest tenth of the differences, rounded up to whole queries
    worst, best  up to five queries with the largest losses and gains, largest first
    """

    gain: float | None
    interval: tuple[float, float] | None
    randomisation_test: Significance
    t_test: Significance
    effect_size: float | None
    wins: int
    losses: int
    ties: int
    hurt: float
    robustness: float
    worst_tenth: float
    worst: tuple[AtQuery, ...]
    best: tuple[AtQuery, ...]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Result of one system; `contrast` is None for the baseline.

    mean      mean value over the judged queries
    interval  95% confidence interval of the mean: see `confidence_interval`
    answered  number of judged queries with at least one result; the others have the value 0
    values    value of each judged query
    """

    mean: float
    interval: tuple[float, float] | None
    answered: int
    contrast: Contrast | None
    values: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of systems on one collection by one measure, the baseline first."""

    target: str
    measure: str
    baseline: str
    systems: Mapping[str, Compared]

    def differences(self, system: str) -> Differences:
        """Return the values of a system minus those of the baseline, (n,), in query order."""
        return _array(self.systems[system].values) - _array(self.systems[self.baseline].values)

    def as_json(self) -> dict[str, Any]:
        """Return all values, and the parameters of the tests, as JSON."""
        return {"tie": TIE, "samples": SAMPLES, **asdict(self)}


def compare(
    measured: Mapping[str, Measured],
    *,
    target: str,
    measure: str = "map",
    baseline: str = "bm25",
) -> Comparison:
    """Return a comparison of systems that were measured on the collection `target`.

    Raise SettingsError if no system has the name of the baseline. Cost: 100,000 sign flips of the
    judged queries per system, about 0.3 s for 225 queries.
    """
    if baseline not in measured:
        raise SettingsError(
            f"baseline = {baseline!r} is not one of the systems: {', '.join(measured)}",
            field="baseline",
        )
    names = [baseline, *(name for name in measured if name != baseline)]
    values = {name: _values(measured[name], measure) for name in names}
    base = values[baseline]
    differences = {name: _array(values[name]) - _array(base) for name in names[1:]}
    by_flips = _corrected({name: randomisation_test(d) for name, d in differences.items()})
    by_t = _corrected({name: paired_t_test(d) for name, d in differences.items()})
    contrasts = {
        name: _contrast(base, values[name], by_flips[name], by_t[name]) for name in differences
    }
    systems = {
        name: Compared(
            mean=float(_array(values[name]).mean()),
            interval=confidence_interval(_array(values[name]), within=(0.0, 1.0)),
            answered=measured[name].answered,
            contrast=contrasts.get(name),
            values=values[name],
        )
        for name in names
    }
    return Comparison(target=target, measure=measure, baseline=baseline, systems=systems)


def _contrast(
    base: Mapping[str, float],
    values: Mapping[str, float],
    by_flips: Significance,
    by_t: Significance,
) -> Contrast:
    differences = _array(values) - _array(base)
    count = len(differences)
    wins = int(np.count_nonzero(differences > TIE + _ROUNDING))
    losses = int(np.count_nonzero(differences < -TIE - _ROUNDING))
    mean = _array(base).mean()
    rows = [AtQuery(query=query, baseline=base[query], value=values[query]) for query in base]
    # Ties stay in query order, at both ends.
    ascending = [rows[i] for i in np.argsort(differences, kind="stable")]
    descending = [rows[i] for i in np.argsort(-differences, kind="stable")]
    return Contrast(
        gain=float(_array(values).mean() / mean - 1) if mean else None,
        interval=confidence_interval(differences, within=(-1.0, 1.0)),
        randomisation_test=by_flips,
        t_test=by_t,
        effect_size=effect_size(differences),
        wins=wins,
        losses=losses,
        ties=count - wins - losses,
        hurt=losses / count,
        robustness=(wins - losses) / count,
        worst_tenth=float(np.sort(differences)[: -(-count // 10)].mean()),
        worst=tuple(row for row in ascending[:EXTREMES] if row.value < row.baseline),
        best=tuple(row for row in descending[:EXTREMES] if row.value > row.baseline),
    )


def _corrected(p_values: Mapping[str, float]) -> dict[str, Significance]:
    corrected = holm(list(p_values.values()))
    return {
        name: Significance(p=p, holm=adjusted)
        for (name, p), adjusted in zip(p_values.items(), corrected, strict=True)
    }


def _values(measured: Measured, measure: str) -> dict[str, float]:
    return {query: values[measure] for query, values in measured.queries.items()}


def _array(values: Mapping[str, float]) -> Differences:
    return np.fromiter(values.values(), dtype=np.float64, count=len(values))
