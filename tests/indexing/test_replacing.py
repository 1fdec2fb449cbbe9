"""Which builds may replace an existing index."""

import json

import pytest

from klsa_search import build, open_index
from klsa_search.errors import CollectionError, StoreError
from klsa_search.indexing import build_like
from klsa_search.indexing.rewrite import refit
from klsa_search.storage.current import current_generation
from klsa_search.storage.manifest import FORMAT_VERSION
from tests.storage.worlds import replace_manifest

CARS = [{"id": str(number), "text": "engines stall"} for number in range(4)]


@pytest.mark.parametrize("damage", [None, "", "?", "000009"])
def test_nothing_does_not_replace_documents_nor_behind_a_damaged_current(tmp_path, damage):
    build(CARS, name="cars", home=tmp_path)
    if damage is not None:
        (tmp_path / "cars" / "CURRENT").write_text(damage)
    with pytest.raises(CollectionError, match="has no documents, and index `cars` has 4"):
        build([], name="cars", home=tmp_path)
    build(CARS, name="cars", home=tmp_path)
    assert len(open_index(tmp_path / "cars")) == 4


def written(path, number):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f'{{"id": "{n}", "text": "engines stall"}}\n' for n in range(number)))
    return path


def served(tmp_path, name="it"):
    return len(open_index(tmp_path / "index" / name))


@pytest.fixture
def tickets(tmp_path):
    """An index of 40 tickets, and its source."""
    source = written(tmp_path / "tickets.jsonl", 40)
    build(source, name="it", home=tmp_path / "index").close()
    return source


def test_another_source_needs_a_yes(tmp_path, tickets):
    ten = written(tmp_path / "ten.jsonl", 10)
    with pytest.raises(StoreError) as caught:
        build(ten, name="it", home=tmp_path / "index")
    for part in ("it` has 40 documents of", str(tickets), str(ten), "replace=True", "--replace"):
        assert part in caught.value.message
    with pytest.raises(StoreError, match="`documents` would replace"):
        build(CARS, name="it", home=tmp_path / "index")
    assert served(tmp_path) == 40
    build(ten, name="it", home=tmp_path / "index", replace=True).close()
    assert served(tmp_path) == 10


def test_replacing_is_checked_before_the_source_is_read(tmp_path, tickets):
    def records():
        raise AssertionError("read before the question")
        yield

    with pytest.raises(StoreError, match="of another source"):
        build(records(), name="it", home=tmp_path / "index")
    ten = written(tmp_path / "ten.jsonl", 10)
    with pytest.raises(StoreError, match="of another source"):
        build(ten, name="it", home=tmp_path / "index", memory=1)  # else refused once it is sampled


def test_the_same_source_again_needs_none(tmp_path, tickets, monkeypatch):
    written(tickets, 30)
    build(tickets, name="it", home=tmp_path / "index").close()
    monkeypatch.chdir(tmp_path)
    build("tickets.jsonl", name="it", home="index", alpha=0.3).close()
    (tmp_path / "link.jsonl").symlink_to(tickets)
    build("link.jsonl", name="it", home="index").close()
    assert served(tmp_path) == 30


def test_the_same_name_in_another_place_is_another_source(tmp_path, tickets):
    other = written(tmp_path / "elsewhere" / "tickets.jsonl", 10)
    with pytest.raises(StoreError, match=r"elsewhere/tickets\.jsonl` would replace"):
        build(other, name="it", home=tmp_path / "index")


def test_without_a_path_the_name_of_the_source_decides(tmp_path, tickets):
    generation = current_generation(tmp_path / "index" / "it")
    raw = json.loads((generation / "manifest.json").read_text())
    replace_manifest(generation, json.dumps(raw | {"source_path": None}).encode())
    build(written(tmp_path / "elsewhere" / "tickets.jsonl", 10), name="it", home=tmp_path / "index")
    assert served(tmp_path) == 10


def test_an_index_of_nothing_asks_nothing(tmp_path, tickets):
    build([], name="empty", home=tmp_path / "index").close()
    build(tickets, name="empty", home=tmp_path / "index").close()
    assert served(tmp_path, "empty") == 40


def test_behind_a_damaged_current_there_are_documents_too(tmp_path, tickets):
    (tmp_path / "index" / "it" / "CURRENT").write_text("")
    with pytest.raises(StoreError, match="it` has 40 documents"):
        build(CARS, name="it", home=tmp_path / "index")


def test_building_again_from_what_an_index_holds_needs_none(tmp_path, tickets):
    again = refit(open_index(tmp_path / "index" / "it"), alpha=0.3)
    assert again.manifest.source_path == str(tickets)
    build(CARS, name="other", home=tmp_path / "index").close()
    assert len(build_like(again, home=tmp_path / "index", name="other")) == 40
    build(tickets, name="it", home=tmp_path / "index").close()


def test_the_path_of_the_source_is_in_the_manifest_and_not_in_the_fingerprint(tmp_path, tickets):
    copy = written(tmp_path / "elsewhere" / "tickets.jsonl", 40)
    one = build(tickets, name="one", home=tmp_path / "index").manifest
    two = build(copy, name="two", home=tmp_path / "index").manifest
    assert (one.source_path, two.source_path) == (str(tickets), str(copy))
    assert one.fingerprint == two.fingerprint
    assert build(CARS, name="three", home=tmp_path / "index").manifest.source_path is None


def test_a_collection_by_name_is_the_same_wherever_it_lies(tmp_path):
    for place in ("one", "two"):
        folder = tmp_path / place / "med"
        folder.mkdir(parents=True)
        (folder / "MED.ALL").write_text(".I 1\n.W\nwing\n")
        (folder / "MED.QRY").write_text(".I 1\n.W\na\n")
        (folder / "MED.REL").write_text("1 0 1 1\n")
        index = build("med", name="it", home=tmp_path / "index", data=tmp_path / place)
        assert index.manifest.source_path is None


def as_format(path, version):
    for manifest in path.glob("0*/manifest.json"):
        text = manifest.read_text()
        own = f'"format_version": {FORMAT_VERSION}'
        manifest.write_text(text.replace(own, f'"format_version": {version}'))


@pytest.mark.parametrize("fault", ["format", "manifest"])
def test_replacing_a_damaged_index_needs_the_option(tmp_path, tickets, fault):
    path = tmp_path / "index" / "it"
    if fault == "format":
        as_format(path, 99)
    else:
        (path / "000001" / "manifest.json").write_text("")
    for source in (CARS, tickets):
        with pytest.raises(StoreError, match=r"that this version cannot read.*replace=True"):
            build(source, name="it", home=tmp_path / "index")
    assert (path / "000001" / "documents_keys.npy").is_file()
    build(CARS, name="it", home=tmp_path / "index", replace=True).close()
    assert served(tmp_path) == 4


def records(number):
    return [{"id": str(n), "text": "engines stall"} for n in range(number)]


def test_records_in_python_may_become_half_as_many_and_no_fewer(tmp_path):
    for number in (50, 50, 25, 60):
        build(iter(records(number)), name="it", home=tmp_path / "index").close()
    with pytest.raises(StoreError, match=r"has 60 documents, and only 29 .*replace=True"):
        build(records(29), name="it", home=tmp_path / "index")
    assert served(tmp_path) == 60
    build(records(3), name="it", home=tmp_path / "index", replace=True).close()
    assert served(tmp_path) == 3


def test_a_file_may_become_as_short_as_it_likes(tmp_path, tickets):
    build(written(tickets, 1), name="it", home=tmp_path / "index").close()
    assert served(tmp_path) == 1


@pytest.mark.parametrize("name", ["WRITES", "WRITES-begun"])
@pytest.mark.parametrize("without_current", [False, True])
def test_writes_that_cannot_be_read_need_a_yes(tmp_path, tickets, name, without_current):
    with open_index(tmp_path / "index" / "it") as index:
        index.delete(["3"])
    (index.path / name).write_bytes(b"?")
    if without_current:
        (index.path.parent / "CURRENT").write_text("")
    with pytest.raises(StoreError, match=r"log of writes cannot be read.*would be lost.*--replace"):
        build(tickets, name="it", home=tmp_path / "index")
    build(tickets, name="it", home=tmp_path / "index", replace=True).close()
    assert served(tmp_path) == 40
