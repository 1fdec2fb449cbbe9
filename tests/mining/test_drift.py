import pytest

from klsa_search import build
from klsa_search.mining.drift import drift
from klsa_search.search.index import open_index
from klsa_search.storage.maintenance import undo_writes

from .conftest import documents


@pytest.fixture(params=[1, 3])
def index(request, tmp_path):
    divided = {} if request.param == 1 else {"partitions": request.param, "workers": 1}
    options = {"dimensions": 8, "latent_dimensions": 4, **divided}
    built = build(documents()[:40], name="some", home=tmp_path, **options)
    yield built
    built.close()


def told(index):
    return index.drift.added_share(len(index)), index.drift.changed_share(len(index))


def test_without_writes_there_is_no_drift(index):
    assert drift(index) == ()


def test_the_drift_of_each_batch_is_that_of_the_index(index):
    rest = documents()[40:]
    changes = [
        lambda: index.add(rest[:4]),
        lambda: index.delete(["d0", "d41", "never"]),
        lambda: index.add([rest[4], rest[0], {"id": "d1", "text": "anew"}]),
        lambda: index.add([{"id": "d1", "text": "again"}, {"id": "d41", "text": "back"}]),
        lambda: index.delete(["d1", "d2"]),
    ]
    expected = []
    for change in changes:
        change()
        expected.append(told(index))
    found = drift(index)
    assert [one.added_share for one in found] == pytest.approx([added for added, _ in expected])
    assert [one.changed_share for one in found] == pytest.approx([one for _, one in expected])
    writes = [one.writes for one in found]
    assert writes == sorted(writes)
    assert all(one.time for one in found)


def test_undone_writes_are_left_out(index, tmp_path):
    index.add(documents()[40:44])
    once = drift(index)
    index.delete(["d5", "d6"])
    undo_writes(tmp_path / "some", 1)
    other = open_index(tmp_path / "some")
    assert drift(other) == once
    other.close()
