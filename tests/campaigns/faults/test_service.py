"""The service answers or refuses every request, however slow."""

from __future__ import annotations

import pytest

from benchmarks.faults import beside, load, rebuilds, slow

pytestmark = pytest.mark.slow


def test_more_requests_than_it_can_answer_and_its_end_amid_them(folder, survived):
    survived(load.run(folder, requests=150, documents=300, measured=2))


def test_others_are_served_beside_slow_sockets(folder, survived):
    survived(slow.run(folder))


def test_a_good_index_is_served_beside_damaged_ones(folder, survived):
    survived(beside.run(folder))


def test_generations_are_taken_up_with_few_descriptors(folder, survived):
    survived(rebuilds.run(folder, rebuilds=5))
