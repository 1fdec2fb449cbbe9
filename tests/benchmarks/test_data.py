"""The data manifest is complete and matches the files."""

import pytest

from benchmarks.data import check, manifest, sums_of
from klsa_search.collection.public_collections import PUBLIC
from studies.datasets import DATASETS
from studies.effectiveness.kinds import KINDS

pytestmark = pytest.mark.slow

DATA = manifest()


def test_all_data_of_the_figures_is_listed():
    assert {*KINDS, *PUBLIC, *DATASETS} <= DATA.keys()
    for name, known in DATA.items():
        assert known.keys() - {"sums"} == {"source", "licence", "get", "convert"}, name
        assert known["source"].startswith("https://")
        assert sums_of(name)
        assert (known["get"] == f"klsa-eval fetch {name}") == (name in PUBLIC)


@pytest.mark.parametrize("name", DATA)
def test_the_files_are_those_of_the_manifest(collections_home, datasets_home, name):
    folders = [collections_home, collections_home / "more", datasets_home]
    folder = next((each / name for each in folders if (each / name).is_dir()), None)
    if folder is None:
        pytest.skip(f"{name} is in none of the folders of data")
    assert check(name, folder) is None


def test_another_file_is_noticed(tmp_path):
    assert check("adi", tmp_path) == f"{tmp_path / 'corpus.jsonl.gz'} is missing"
    (tmp_path / "ionosphere.csv").write_text("1,2\n")
    assert "has the sum" in check("ionosphere", tmp_path)
