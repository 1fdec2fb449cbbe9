"""Choosing among candidates, and what such a choice is worth on queries it has not seen.

The judged value of a candidate has no part that is learnt from queries, so the mean over inner
folds is the mean over the training queries: nested cross-validation is arithmetic on one table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from klsa_search.evaluation.candidates import Table
from klsa_search.evaluation.significance import Differences, randomisation_test

FEWEST_QUERIES = 4
"""Judged queries without which there is nothing to fold; under six, no choice can be sure."""
REPEATS = 10
"""Ways to part the queries into folds: what one way finds depends on its luck."""
RESAMPLES = 10_000
"""Of the queries, for an interval."""

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
    """Choose the column with the largest gain over the first less two standard errors.

    By the mean alone, the luckiest of many candidates would win; its gain has to be steady over
    the queries too. The first column, the default, gains 0 for certain and stays if no other is
    better beyond noise. table: (Q, C) with Q at least 2.
    """
    gains = table - table[:, :1]
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    return int(np.argmax(gains.mean(axis=0) - 2 * errors))


def cross_validate(table: Table, folds: int, seed: int = 0) -> HeldOut:
    """Part the queries into folds, choose without each fold, judge on it; ten times over.

    The held-out value of a query is its mean over the ten partitions. table: (Q, C) with Q at
    least `FEWEST_QUERIES`; folds at least 2, and no more than the queries. Same seed, same answer.
    Cost O(10 · folds · Q · C).
    """
    size = len(table)
    folds = min(folds, size)
    randomness = np.random.default_rng(seed)
    gains = table - table[:, :1]
    differences = np.zeros(size)
    choices: Counter[int] = Counter()
    for _ in range(REPEATS):
        fold_of = randomness.permutation(np.arange(size) % folds)
        for fold in range(folds):
            out = fold_of == fold
            column = choose(table[~out])
            choices[column] += 1
            differences[out] += gains[out, column]
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
    """Find the 2.5th and the 97.5th percentile of the mean of resampled queries [Efron, 1979].

    differences: (Q,). Cost O(10 000 · Q).
    """
    randomness = np.random.default_rng(seed)
    size = len(differences)
    means = np.concatenate(
        [
            differences[randomness.integers(0, size, (_CHUNK, size))].mean(axis=1)
            for _ in range(RESAMPLES // _CHUNK)
        ]
    )
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
