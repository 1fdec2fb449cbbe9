"""Alone: what the features of all documents lead to, in one step, as on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.cluster.analysing import settings_of
from klsa_search.cluster.files import mapped, note
from klsa_search.cluster.work import Made
from klsa_search.indexing.build import spectrum_entry
from klsa_search.indexing.weighing import write_cut
from klsa_search.kernel import DocumentKernel
from klsa_search.progress import silent


def decompose_alone(
    out: Path, shards: Sequence[Made], weights: Made, columns: int, settings: Mapping[str, Any]
) -> None:
    """Step: `cut_*`, `eigenvalues`, and `eigenvectors` where they are kept."""
    chosen = settings_of(settings)
    starts = [np.zeros(1, np.int64)]
    for shard in shards:
        starts.append(starts[-1][-1] + mapped(shard, "features_starts")[1:])
    numbers, values = (
        np.concatenate([mapped(shard, f"features_{name}") for shard in shards])
        for name in ("columns", "weights")
    )
    ends = narrowed(np.concatenate(starts))
    Phi = sparse.csr_array((values, numbers, ends), shape=(len(ends) - 1, columns))
    Phi.has_sorted_indices = True
    kernel = DocumentKernel.of(Phi, centred=chosen.centred, normalised=chosen.normalised)
    of_terms = mapped(weights, "weights")
    spectrum = write_cut(out, kernel, of_terms, chosen, silent)
    note(out, **spectrum_entry(spectrum).model_dump(mode="json"))
