"""Durability is a subject here."""

from collections.abc import Iterator

import pytest

from tests.support.disk import syncing_by, to_disk


@pytest.fixture(scope="package", autouse=True)
def synced_to_disk() -> Iterator[None]:
    with syncing_by(to_disk):
        yield
