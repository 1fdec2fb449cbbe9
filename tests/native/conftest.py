"""Each test that asks for `instruction_set` runs on every one that this processor has."""

from __future__ import annotations

import pytest

from klsa_search import _native


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def instruction_set(request):
    if request.param not in _native.instruction_sets():
        pytest.skip(f"the processor does not have it: {request.param}")
    previous = _native.select_instruction_set(request.param)
    yield request.param
    _native.select_instruction_set(previous)
