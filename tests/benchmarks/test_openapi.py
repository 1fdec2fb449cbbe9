import pytest

from benchmarks.openapi import judged

pytestmark = pytest.mark.slow


def test_the_service_answers_as_its_schema_says(patient_service):
    statuses, wrong = judged(200)
    assert not wrong, "\n".join(wrong)
    assert {200, 400, 404, 422} <= set(statuses)
    assert max(statuses) < 500
