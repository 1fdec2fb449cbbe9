"""Settings in manifests of earlier versions."""

import pytest

from klsa_search.storage.manifest import settings_as_built


@pytest.mark.parametrize(
    ("before", "now"),
    [("whole", "dense"), ("factors", "factored"), ("cut", "sparse"), ("auto", "auto")],
)
def test_former_names_of_expansions_are_read(before, now):
    assert settings_as_built({"expansion": before}).expansion == now
