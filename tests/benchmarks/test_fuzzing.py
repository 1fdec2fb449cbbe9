import pytest

from benchmarks.fuzzing import fuzzed

pytestmark = pytest.mark.slow


def test_whatever_is_given_is_read_or_refused():
    fuzz = fuzzed(2_000)
    assert not fuzz.wrong, "\n".join(fuzz.wrong.values())
    kinds = {"query", "filter as text", "filter as json"}
    assert {(kind, "refused") for kind in kinds - {"query"}} <= set(fuzz.counts)
    assert {(kind, "read") for kind in kinds} <= set(fuzz.counts)
