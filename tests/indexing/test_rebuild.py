import pytest

from klsa_search.errors import StoreError
from klsa_search.indexing.build import build
from klsa_search.indexing.rewrite import refit
from klsa_search.storage.maintenance import verify

DOCUMENTS = [
    {"id": "heat", "title": "Heat", "text": "engines overheat when coolant leaks", "year": 1999},
    {"id": "cold", "title": "Cold", "text": "coolant thins in the cold and engines stall"},
    {"id": "tyre", "title": "Tyres", "text": "worn tyres slip on wet roads"},
]


@pytest.mark.parametrize("changes", [{"alpha": 0.3}, {"k1": 2.0, "b": 0.4}, {"gamma": 0.9}])
def test_a_rebuild_equals_a_build_with_these_settings(tmp_path, changes):
    index = build(DOCUMENTS, name="cars", home=tmp_path / "one", z=5)
    again = refit(index, **changes)
    wanted = build(DOCUMENTS, name="cars", home=tmp_path / "two", z=5, **changes)
    assert again.generation == "000002"
    assert again.settings == wanted.settings
    assert again.manifest.fingerprint == wanted.manifest.fingerprint != index.manifest.fingerprint
    arrays = {name: file.sha256 for name, file in wanted.manifest.files.items() if "npy" in name}
    assert arrays.items() <= {n: f.sha256 for n, f in again.manifest.files.items()}.items()
    assert again.manifest.source == index.manifest.source
    assert dict(again.document("heat").metadata) == {"year": 1999}
    verify(again.path.parent)


def test_an_index_replaced_meanwhile_is_left_alone(tmp_path):
    index = build(DOCUMENTS, name="cars", home=tmp_path)
    build(DOCUMENTS[:2], name="cars", home=tmp_path)
    with pytest.raises(StoreError, match="rebuilt after generation 000001"):
        refit(index, alpha=0.3)
