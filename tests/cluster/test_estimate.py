"""Memory of a worker: agrees with measurements, and falls with the number of shards."""

import pytest

from klsa_search.cluster.build import worker_memory
from klsa_search.core.config import Settings
from klsa_search.errors import SettingsError
from klsa_search.indexing import Shape

# Of the generated corpus, as tests/indexing/test_plan.py has it.
SHAPE = Shape(
    300_000, 192_000_000, 15_737_871, 151_678, 11_957_544, 1_033_453, 11_832_660, 26_355_000
)
MEASURED = {
    "documents": 149,
    "counts": 210,
    "postings": 263,
    "eigenvectors": 293,
    "neighbours": 377,
    "expansion": 350,
}
"""MiB at the peak of a process of its own a step, four shards."""


def test_each_phase_of_300_000_documents_is_what_was_measured():
    memory = worker_memory(SHAPE, Settings(), 4)
    assert {name: memory[name] / 2**20 for name in MEASURED} == pytest.approx(MEASURED, rel=0.25)


def test_more_shards_need_less():
    peaks = [max(worker_memory(SHAPE, Settings(), shards).values()) for shards in (1, 2, 4, 8)]
    assert peaks == sorted(peaks, reverse=True)
    plain = 1344 * 2**20
    assert all(
        peak <= 1.3 / shards * plain + 150 * 2**20
        for peak, shards in zip(peaks, (1, 2, 4, 8), strict=True)
    )


def test_what_is_not_cut_is_not_planned():
    with pytest.raises(SettingsError, match="only a build on one machine"):
        worker_memory(SHAPE, Settings.of_preset("paper"), 4)
