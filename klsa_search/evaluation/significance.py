"""Is a difference more than the luck of the queries? Pure functions of paired differences.

Throughout, `differences` is (n,): one value a query, that of a system less that of the baseline.
The tests are two-sided and ask whether the mean could be 0. Holm's correction makes up for asking
of several systems at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Differences = npt.NDArray[np.float64]
"""(n,) value of a system minus that of the baseline, by query."""

SAMPLES = 100_000
"""Random sign flips where there are too many queries to try them all."""

_EXACT = 16
"""Up to so many differing queries, all 2^n flips are fewer than the samples."""
_CHUNK = 10_000
"""Flips in memory at a time: 20 MB for 250 queries."""
_ROUNDING = 1e-12
"""Of the sum of all sizes: sums closer than this are equal but for the order of adding."""


def randomisation_test(differences: Differences, *, samples: int = SAMPLES, seed: int = 0) -> float:
    """Return the two-sided p value of the paired randomisation test (Smucker et al., CIKM 2007).

    If both systems were equal, the sign of each difference would be random. p is the share of sign
    flips whose sum is at least as far from 0 as the observed one. Exact if at most 16 queries
    differ; otherwise estimated from `samples` random flips and the observed one, so that p is never
    0 (Phipson & Smyth, 2010), with an error below 0.0016 near p = 0.05 (two standard errors). 1 if
    no query differs.

    Cost: O(2^n · n) for up to 16 differences, otherwise O(samples · n).
    """
    moved = differences[differences != 0]
    limit = abs(moved.sum()) - _ROUNDING * np.abs(moved).sum()
    if len(moved) <= _EXACT:
        flips = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
        return _as_far(flips, moved, limit) / len(flips)
    rng = np.random.default_rng(seed)
    found = 0
    for start in range(0, samples, _CHUNK):
        shape = (min(_CHUNK, samples - start), len(moved))
        found += _as_far(rng.integers(0, 2, shape, dtype=np.bool_), moved, limit)
    return (found + 1) / (samples + 1)


def _as_far(flips: npt.NDArray[np.generic], moved: Differences, limit: float) -> int:
    """Count the rows of flips (m, n) whose sum is at least `limit` in size."""
    sums = moved.sum() - 2 * (flips.astype(np.float64) @ moved)
    return int(np.count_nonzero(np.abs(sums) >= limit))


def paired_t_test(differences: Differences) -> float:
    """Return the two-sided p value of Student's paired t-test, with n - 1 degrees of freedom.

    1 for fewer than two queries, or if none differs; 0, the limit, if all differ by the same
    amount. Cost: O(n).
    """
    if len(differences) < 2 or not differences.any():
        return 1.0
    if _alike(differences):
        return 0.0
    # Half a second to import, which only a comparison is to pay.
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def effect_size(differences: Differences) -> float | None:
    """Return Cohen's d of paired values: the mean difference in units of its standard deviation.

    About 0.2 is small, 0.5 medium, 0.8 large (Cohen, 1988). 0 if no query differs; None if it is
    undefined, for one query, or if all differ by the same amount. Cost: O(n).
    """
    if not differences.any():
        return 0.0
    if len(differences) < 2 or _alike(differences):
        return None
    return float(differences.mean() / differences.std(ddof=1))


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
    from scipy.stats import t  # half a second to import, which only a comparison is to pay

    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    reach = t.ppf(0.975, len(values) - 1) * error
    return float(max(mean - reach, within[0])), float(min(mean + reach, within[1]))


def _alike(differences: Differences) -> bool:
    """Whether all are the same, but for rounding."""
    return bool(np.ptp(differences) <= _ROUNDING * np.abs(differences).max())


def holm(p_values: Sequence[float]) -> list[float]:
    """Return m p values with the step-down correction of Holm (1979), in the same order.

    The smallest is multiplied by m, the next by m - 1, and so on; no value is above 1 or below its
    predecessor. With a threshold of 0.05, the probability of any false positive is at most 5%, for
    dependent tests, too. Cost: O(m log m).
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[place]))
        corrected[place] = highest
    return corrected
