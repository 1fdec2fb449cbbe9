"""Statistical tests of paired differences, as pure functions.

`differences` is (n,): the value of a system minus that of the baseline, by query. Tests are
two-sided, with the null hypothesis of mean 0. Holm's correction is for several systems.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Differences = npt.NDArray[np.float64]
"""(n,) value of a system minus that of the baseline, by query."""

SAMPLES = 100_000
"""Random sign flips if there are too many queries for all flips."""

_EXACT = 16
"""Up to this number of differing queries, all 2^n flips are fewer than the samples."""
_CHUNK = 10_000
"""Flips in memory at a time: 20 MB for 250 queries."""
_ROUNDING = 1e-12
"""Relative to the sum of all sizes: smaller differences of sums are rounding errors."""


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
    if _are_equal(differences):
        return 0.0
    # The import takes half a second, so only a comparison pays it.
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def effect_size(differences: Differences) -> float | None:
    """Return Cohen's d of paired values: the mean difference in units of its standard deviation.

    About 0.2 is small, 0.5 medium, 0.8 large (Cohen, 1988). 0 if no query differs; None if it is
    undefined, for one query, or if all differ by the same amount. Cost: O(n).
    """
    if not differences.any():
        return 0.0
    if len(differences) < 2 or _are_equal(differences):
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
    from scipy.stats import t  # the import takes half a second, so only a comparison pays it

    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    reach = t.ppf(0.975, len(values) - 1) * error
    return float(max(mean - reach, within[0])), float(min(mean + reach, within[1]))


def _are_equal(differences: Differences) -> bool:
    """Return whether all are equal, except for rounding."""
    return bool(np.ptp(differences) <= _ROUNDING * np.abs(differences).max())


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
