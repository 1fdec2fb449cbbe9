"""Choice among candidates, and its value on held-out queries by cross-validation.

The value of a candidate for a query does not depend on other queries, so nested cross-validation is
arithmetic on one table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from klsa_search.evaluation.candidates import Table
from klsa_search.evaluation.significance import Differences, randomisation_test

FEWEST_QUERIES = 4
"""Least number of judged queries to divide into folds; below six, no choice is significant."""
REPEATS = 10
"""Random divisions into folds, which reduce the variance of a single one."""
RESAMPLES = 10_000
"""Bootstrap samples of the queries for an interval."""

_CHUNK = 1000


@dataclass(frozen=True)
class HeldOut:
    """Result of cross-validation: each query is measured with settings chosen without it.

    default    mean of the settings of the index
    tuned      mean of the chosen settings
    low, high  95% interval of tuned - default, by bootstrap over the queries
    p          p value of the paired randomisation test
    chosen     column that is chosen from all queries
    agreement  share of the folds that chose this column
    """

    default: float
    tuned: float
    low: float
    high: float
    p: float
    chosen: int
    agreement: float


def choose(table: Table) -> int:
    """Return the column with the largest mean gain over the first, minus two standard errors.

    By the mean alone, the luckiest of many candidates would win; its gain also has to be consistent
    over queries. The first column, the default, gains 0 and stays if no other is significantly
    better. table: (Q, C) with Q at least 2.
    """
    gains = table - table[:, :1]
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    return int(np.argmax(gains.mean(axis=0) - 2 * errors))


def cross_validate(table: Table, folds: int, seed: int = 0) -> HeldOut:
    """Divide the queries into folds, choose without each fold, and measure on it; ten times.

    table  (Q, C) with Q at least `FEWEST_QUERIES`
    folds  at least 2, and at most Q
    The held-out value of a query is its mean over the ten divisions. The result is deterministic
    for a seed. Cost: O(10 · folds · Q · C).
    """
    size = len(table)
    folds = min(folds, size)
    generator = np.random.default_rng(seed)
    gains = table - table[:, :1]
    differences = np.zeros(size)
    choices: Counter[int] = Counter()
    for _ in range(REPEATS):
        fold_of = generator.permutation(np.arange(size) % folds)
        for fold in range(folds):
            held_out = fold_of == fold
            column = choose(table[~held_out])
            choices[column] += 1
            differences[held_out] += gains[held_out, column]
    differences /= REPEATS
    low, high = bootstrap_interval(differences, seed)
    chosen = choose(table)
    return HeldOut(
        default=float(table[:, 0].mean()),
        tuned=float(table[:, 0].mean() + differences.mean()),
        low=low,
        high=high,
        p=randomisation_test(differences, seed=seed),
        chosen=chosen,
        agreement=choices[chosen] / choices.total(),
    )


def bootstrap_interval(differences: Differences, seed: int = 0) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of the mean of resampled queries [Efron, 1979].

    differences  (Q,)
    Cost: O(10,000 · Q).
    """
    generator = np.random.default_rng(seed)
    size = len(differences)
    means = np.concatenate(
        [
            differences[generator.integers(0, size, (_CHUNK, size))].mean(axis=1)
            for _ in range(RESAMPLES // _CHUNK)
        ]
    )
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
