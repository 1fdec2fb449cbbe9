"""Logarithmic tf-idf features of documents: log(1 + f(t,d)) · log(1 + N / n_t).

Length does not matter, because the index normalises its features.
"""

from __future__ import annotations

import numpy as np

from klsa_search.plugins import FeatureWeighting

TF_IDF = FeatureWeighting(
    norm=lambda lengths, average: np.ones(len(lengths)),
    local=lambda counts, norms: np.log1p(counts),
    weight=lambda frequencies, documents: np.log1p(documents / np.maximum(frequencies, 1)),
)
