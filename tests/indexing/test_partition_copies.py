"""Verify, repair, back up and restore an index in partitions."""

import shutil

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexDamaged, IndexExists, StoreError
from klsa_search.indexing import refit, repair, verify_deep
from klsa_search.storage import maintenance
from klsa_search.storage.aliases import set_alias
from klsa_search.storage.backup import back_up
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import commit, describe_files, new_generation
from klsa_search.storage.maintenance import copy_index, verify
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.partitions import partition_of
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow, restore_all, restore_index
from klsa_search.storage.write_log_writer import LogWriter

COUNT = 60


def documents():
    return [
        {"id": f"d{number}", "text": f"word{number % 7} word{number % 11}"}
        for number in range(COUNT)
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    home = tmp_path_factory.mktemp("written")
    with build(documents(), name="parts", home=home, partitions=2, workers=1) as index:
        index.add([{"id": "new", "text": "word1 zebra"}, {"id": "d3", "text": "word2 quagga"}])
        index.delete(["d7"])
        index.set_synonyms({"tv": ["word3"]})
        index.judge("word1", "d1", 1)
        index.update_settings(alpha=0.5)
    return home


@pytest.fixture
def index(written, tmp_path):
    with open_index(shutil.copytree(written, tmp_path / "home") / "parts") as index:
        yield index


@pytest.fixture
def path(index):
    return index.path.parent


def content(index):
    return {
        "documents": {each.id: each.text for each in index.live_documents()},
        "scores": [
            sorted((hit.id, hit.score) for hit in index.search(query, 100, ranker="bm25").hits)
            for query in ("word1 zebra", "quagga", "tv")
        ],
        "synonyms": {word: list(others) for word, others in index.synonyms.items()},
        "judgements": [(each.text, each.grades) for each in index.judgements.queries()],
        "alpha": index.settings.alpha,
    }


def content_at(path):
    with open_index(path) as index:
        assert len(index.partitions) > 1
        return content(index)


def test_partitions_of_unequal_lengths_are_verified(tmp_path):
    """Their postings are saturated by the mean length of all documents."""
    ids = [f"d{number}" for number in range(20)]
    made = [{"id": id_, "text": "word " * (1 + 9 * partition_of(id_, 2))} for id_ in ids]
    build(made, name="unequal", home=tmp_path, partitions=2, workers=1).close()
    assert verify_deep(tmp_path / "unequal").counts.documents == 20


def test_all_partitions_are_verified(path):
    manifest = verify_deep(path)
    assert manifest.counts.documents == COUNT
    assert {name.split("/")[0] for name in manifest.files} == {
        "000001-0",
        "000001-1",
        "000001-terms",
    }
    file = current_generation(path / "000001-1") / "lengths.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(IndexDamaged, match="000001-1"):
        verify(path)


def test_a_document_of_another_partition_is_damage(path):
    with LogWriter(current_generation(path / "000001-0")) as log:
        log.append(deletes=["none"])
    verify_deep(path)
    with open_index(path / "000001-0") as part:
        other = next(id_ for n in range(9) if partition_of(id_ := f"n{n}", 2) == 1)
        part.add([{"id": other, "text": "x"}])
    with pytest.raises(IndexDamaged, match="belongs to another partition"):
        verify_deep(path)


def test_a_damaged_partition_is_built_again_with_the_others(index, path):
    """In the order of the source, by which documents with equal scores are ordered."""
    before, ids = content(index), index.ids()
    built = [f"d{number}" for number in range(COUNT) if number not in (3, 7)]
    assert ids[: len(built)] == built
    assert repair(path).fault is None
    file = current_generation(path / "000001-1") / "lengths.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    done = repair(path)
    assert done.fault is not None
    assert "000001-1" in done.fault
    assert done.index.generation == "000002"
    verify_deep(path)
    assert (content(done.index), done.index.ids()) == (before, ids)
    done.index.close()


def test_damaged_terms_of_all_partitions_are_named_and_repaired(index, path):
    before = content(index)
    (file,) = current_generation(path / "000001-terms").glob("terms.*")
    written = file.read_bytes()
    file.write_bytes(written[:-1] + bytes([written[-1] ^ 1]))
    step = f"run `klsa-index repair parts --home {path.parent}`"
    for check in (open_index, verify):
        with pytest.raises(IndexDamaged, match=f"{file}` has changed .*{step}"):
            check(path)
    with repair(path).index as done:
        assert content(done) == before
    verify_deep(path)


def test_lost_terms_of_all_partitions_are_made_again(index, path):
    before = content(index)
    shutil.rmtree(path / "000001-terms")
    for check in (open_index, verify):
        with pytest.raises(IndexDamaged, match=r"000001-terms` is missing; .* repair parts "):
            check(path)
    with repair(path).index as done:
        assert content(done) == before


def test_terms_that_are_not_those_of_the_partitions_are_damage(path):
    before = current_generation(path / "000001-terms")
    with new_generation(path / "000001-terms") as fresh:
        for file in before.glob("*.*"):
            shutil.copy(file, fresh)
        numbers = np.load(fresh / "frequencies.npy")
        numbers[0] += 1
        np.save(fresh / "frequencies.npy", numbers)
        (fresh / "manifest.json").unlink()
        files = describe_files(fresh)
        commit(fresh, read_manifest(before).model_copy(update={"files": files}))
    verify(path)
    with pytest.raises(IndexDamaged, match="000002` does not match the terms of the partitions"):
        verify_deep(path)


def test_a_changed_manifest_of_a_partition_needs_a_backup(index, path):
    file = current_generation(path / "000001-1") / "manifest.json"
    file.write_bytes(file.read_bytes().replace(b"documents", b"docoments", 1))
    with pytest.raises(IndexDamaged, match=f"klsa-index dump parts FILE --home {path.parent}`"):
        repair(path)


def test_a_copy_has_all_partitions_at_one_moment(index, path, tmp_path, monkeypatch):
    written = []
    copy_to = maintenance.WriteLog.copy_to

    def writing(log, target):
        copy_to(log, target)
        if not written:  # after the log of the first partition
            written.extend(f"w{number}" for number in range(8))
            index.add([{"id": id_, "text": "zebra"} for id_ in written])

    with monkeypatch.context() as context:
        context.setattr(maintenance.WriteLog, "copy_to", writing)
        manifest = copy_index(path, tmp_path / "copy")
    assert len(manifest.files) == len(verify(tmp_path / "copy").files)
    assert content_at(tmp_path / "copy") == content(index)
    with pytest.raises(StoreError, match="already exists"):
        copy_index(path, tmp_path / "copy")


def test_a_repository_has_an_index_in_partitions(index, path, tmp_path):
    home, target = path.parent, Repository(str(tmp_path / "repository"))
    set_alias(home, "alias", "parts")
    assert not back_up(target, home).faults
    restore_index(target, "parts", tmp_path / "other" / "again")
    assert content_at(tmp_path / "other" / "again") == content(index)
    restore_all(target, tmp_path / "all")
    (tmp_path / "all" / "parts" / "CURRENT").unlink()  # as if it was killed before its last step
    restore_all(target, tmp_path / "all")
    assert content_at(tmp_path / "all" / "alias") == content(index)
    with pytest.raises(IndexExists):
        restore_index(target, "parts", tmp_path / "all" / "parts")
    index.add([{"id": "later", "text": "zebra"}])
    assert back_up(target, home).written < 100_000
    with pytest.raises(IndexExists):
        restore_all(target, tmp_path / "all")


@pytest.mark.slow
def test_a_follower_follows_writes_refits_and_splits(index, path, tmp_path):
    home, target = path.parent, Repository(str(tmp_path / "repository"))
    follower = tmp_path / "follower"

    def follows():
        back_up(target, home)
        follow(target, follower)

    follows()
    with open_index(follower / "parts") as reader:
        assert content(reader) == content(index)
        index.add([{"id": f"later{number}", "text": "zebra"} for number in range(6)])
        index.update_settings(alpha=0.75)
        follows()
        reader.refresh()
        assert reader.generation == "000001"
        assert content(reader) == content(index)
        refit(path).close()
        index.refresh()
        follows()
        reader.refresh()
        assert reader.generation == "000002"
        assert content(reader) == content(index)
    refit(path, partitions=1).close()
    follows()
    with open_index(follower / "parts") as one:
        assert len(one.partitions) == 1
        assert len(one) == len(index)
    folders = sorted(entry.name for entry in (follower / "parts").glob("0*"))
    assert folders == ["000002", "000002-0", "000002-1", "000002-terms", "000003"]
    refit(path, partitions=3).close()
    follows()
    with open_index(path) as source:
        assert content_at(follower / "parts") == content(source)
