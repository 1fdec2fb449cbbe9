"""Comparison of systems with a baseline, query by query.

A query is won or lost if the difference is larger than `TIE`, and tied otherwise. Tests of paired
differences are two-sided, with the null hypothesis of mean 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.errors import SettingsError
from klsa_search.evaluation.measures import RunMeasures

Differences = npt.NDArray[np.float64]  # (n,) value of a system minus that of the baseline, by query
SAMPLES = 100_000  # random sign flips if there are too many queries for all flips
_EXACT = 16  # up to this number of differing queries, all 2^n flips are fewer than the samples
_CHUNK = 10_000  # flips in memory at a time: 20 MB for 250 queries


def randomisation_test(differences: Differences, *, samples: int = SAMPLES, seed: int = 0) -> float:
    """Return the two-sided p value of the paired randomisation test (Smucker et al., CIKM 2007).

    If both systems were equal, the sign of each difference would be random. p is the share of sign
    flips whose sum is at least as far from 0 as the observed one. Exact if at most 16 queries
    differ; otherwise estimated from `samples` random flips and the observed one, so that p is never
    0 (Phipson & Smyth, 2010), with an error below 0.0016 near p = 0.05 (two standard errors). 1 if
    no query differs.

    Cost: O(2^n · n) for up to 16 differences, otherwise O(samples · n).
    """
    non_zero = differences[differences != 0]
    limit = abs(non_zero.sum()) - _ROUNDING * np.abs(non_zero).sum()
    if len(non_zero) <= _EXACT:
        flips = (np.arange(2 ** len(non_zero))[:, None] >> np.arange(len(non_zero))) & 1
        return _extreme(flips, non_zero, limit) / len(flips)
    rng = np.random.default_rng(seed)
    count = 0
    for start in range(0, samples, _CHUNK):
        shape = (min(_CHUNK, samples - start), len(non_zero))
        count += _extreme(rng.integers(0, 2, shape, dtype=np.bool_), non_zero, limit)
    return (count + 1) / (samples + 1)


def _extreme(flips: npt.NDArray[np.generic], differences: Differences, limit: float) -> int:
    """Return the number of rows of flips (m, n) whose sum is at least `limit` in size."""
    sums = differences.sum() - 2 * (flips.astype(np.float64) @ differences)
    return int(np.count_nonzero(np.abs(sums) >= limit))


def paired_t_test(differences: Differences) -> float:
    """Return the two-sided p value of Student's paired t-test, with n - 1 degrees of freedom.

    1 for fewer than two queries, or if none differs; 0, the limit, if all differ by the same
    amount. Cost: O(n).
    """
    if len(differences) < 2 or not differences.any():
        return 1.0
    if np.ptp(differences) <= _ROUNDING * np.abs(differences).max():
        return 0.0
    # The import takes half a second, so only a comparison pays it.
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def confidence_interval(
    values: Differences, within: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[float, float] | None:
    """Return the 95% confidence interval of a mean, by Student's t; None for fewer than two values.

    within  limits of the mean; the interval ends there

    It is mean ± t(0.975, n - 1) s / √n with the standard deviation s (Sakai, SIGIR Forum 2014).
    Cost: O(n).
    """
    if len(values) < 2:
        return None
    from scipy.stats import t  # the import takes half a second, so only a comparison pays it

    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    reach = t.ppf(0.975, len(values) - 1) * error
    return float(max(mean - reach, within[0])), float(min(mean + reach, within[1]))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return m p values with the step-down correction of Holm (1979), in the same order.

    The smallest is multiplied by m, the next by m - 1, and so on; no value is above 1 or below its
    predecessor. With a threshold of 0.05, the probability of any false positive is at most 5%, for
    dependent tests, too. Cost: O(m log m).
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for step, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[i]))
        corrected[i] = highest
    return corrected


TIE = 0.01  # largest difference that counts as a tie; users do not notice it
EXTREMES = 5  # maximum number of queries in `worst` and in `best`
_ROUNDING = 1e-12  # 0.51 - 0.50 is a tie, although its floating-point value is slightly above 0.01


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
    hurt         losses / n
    worst, best  up to five queries with the largest losses and gains, largest first
    """

    gain: float | None
    interval: tuple[float, float] | None
    randomisation_test: Significance
    t_test: Significance
    wins: int
    losses: int
    ties: int
    hurt: float
    worst: tuple[AtQuery, ...]
    best: tuple[AtQuery, ...]


@dataclass(frozen=True, kw_only=True)
class SystemResult:
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
    systems: Mapping[str, SystemResult]

    def as_json(self) -> dict[str, Any]:
        """Return all values, and the parameters of the tests, as JSON."""
        return {"tie": TIE, "samples": SAMPLES, **asdict(self)}


def compare(
    measured: Mapping[str, RunMeasures],
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
    values = {
        name: {query: of_query[measure] for query, of_query in measured[name].queries.items()}
        for name in names
    }
    base = values[baseline]
    differences = [_array(values[name]) - _array(base) for name in names[1:]]
    by_flips = _corrected(list(map(randomisation_test, differences)))
    by_t = _corrected(list(map(paired_t_test, differences)))
    contrasts = {
        name: _contrast(base, values[name], flips, t)
        for name, flips, t in zip(names[1:], by_flips, by_t, strict=True)
    }
    systems = {
        name: SystemResult(
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
        wins=wins,
        losses=losses,
        ties=count - wins - losses,
        hurt=losses / count,
        worst=tuple(row for row in ascending[:EXTREMES] if row.value < row.baseline),
        best=tuple(row for row in descending[:EXTREMES] if row.value > row.baseline),
    )


def _corrected(p_values: Sequence[float]) -> list[Significance]:
    pairs = zip(p_values, holm(p_values), strict=True)
    return [Significance(p=p, holm=adjusted) for p, adjusted in pairs]


def _array(values: Mapping[str, float]) -> Differences:
    return np.fromiter(values.values(), dtype=np.float64, count=len(values))
