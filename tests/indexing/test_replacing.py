"""What an index holds, and what may not take its place."""

from __future__ import annotations

import pytest

from klsa_search import build, open_index
from klsa_search.errors import CollectionError, IndexDamaged, StoreError

CARS = [{"id": str(number), "text": "engines stall"} for number in range(4)]


@pytest.mark.parametrize("damage", ["", "?", "000009"])
def test_nothing_does_not_replace_documents_behind_a_damaged_current(tmp_path, damage):
    build(CARS, name="cars", home=tmp_path)
    (tmp_path / "cars" / "CURRENT").write_text(damage)
    with pytest.raises(CollectionError, match="holds no document, and index cars holds 4"):
        build([], name="cars", home=tmp_path)
    build(CARS, name="cars", home=tmp_path)
    assert len(open_index(tmp_path / "cars")) == 4


def test_a_folder_of_the_user_survives_a_build_of_its_name(tmp_path):
    reports = tmp_path / "reports" / "2023"
    reports.mkdir(parents=True)
    (reports / "may.txt").write_text("Engines overheat.")
    with pytest.raises(StoreError, match="reports is there and is not an index"):
        build(CARS, name="reports", home=tmp_path)
    assert (reports / "may.txt").read_text() == "Engines overheat."


def test_an_edited_manifest_is_not_opened(tmp_path):
    index = build(CARS, name="cars", home=tmp_path, alpha=0.3)
    manifest = index.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"alpha": 0.3', '"alpha": 0.4'))
    with pytest.raises(IndexDamaged, match=r"manifest\.json has changed since it was built"):
        open_index(tmp_path / "cars")
