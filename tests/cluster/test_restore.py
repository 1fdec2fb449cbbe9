"""Machines that restore the partitions they do not have from a repository of backups."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from klsa_search import build, open_index
from klsa_search.cluster.host import PartitionHost, followed_builds
from klsa_search.cluster.remote import open_cluster_index
from klsa_search.errors import IndexDamaged, IndexNotFound
from klsa_search.storage.backup import back_up
from klsa_search.storage.current import current_build
from klsa_search.storage.partitions import documents_of
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow, restore_partition
from tests.cluster.local_workers import LocalCluster
from tests.support.worlds import TOPIC_QUERIES, topic_records


class World:
    """A service that follows the backups of another, and machines with empty disks."""

    def __init__(self, folder):
        self.source, self.front = folder / "source", folder / "front"
        self.kept, self.machines = str(folder / "kept"), [folder / "one", folder / "two"]

    def back_up(self):
        # A copy of the folder is another index directory.
        back_up(Repository(self.kept), self.source, keep=1, take_over=True)
        follow(Repository(self.kept), self.front)

    def opened(self, replicas=1):
        cluster = LocalCluster(replicas, follow=self.kept, machines=self.machines)
        return open_cluster_index(self.front / "notes", cluster), cluster

    def host(self, machine, partition=1):
        generation = documents_of(current_build(self.front / "notes"))[partition]
        (followed,) = followed_builds([generation], self.kept, every=0)
        folder = machine / generation.relative_to(self.front)
        return lambda: PartitionHost(str(folder), None, followed), folder

    def is_equal(self, index):
        with open_index(self.source / "notes") as here:
            for query in TOPIC_QUERIES[:2]:
                for options in ({}, {"ranker": "bm25"}, {"filter": "year > 2010"}):
                    ours, theirs = (each.search(query, 20, **options) for each in (index, here))
                    if (ours.hits, ours.total) != (theirs.hits, theirs.total):
                        return False
        return True


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a backup that was followed; it is copied."""
    folder = tmp_path_factory.mktemp("made")
    world = World(folder)
    build(topic_records(), name="notes", home=world.source, partitions=3, workers=1).close()
    with open_index(world.source / "notes") as index:
        index.add(topic_records(9, 2, 500))
    world.back_up()
    return folder


@pytest.fixture
def world(made, tmp_path):
    return World(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def test_empty_machines_get_their_partitions_and_later_writes(world):
    index, cluster = world.opened(replicas=2)
    assert all(len(list(home.glob("notes/*/0*/manifest.json"))) == 4 for home in world.machines)
    assert world.is_equal(index)
    with open_index(world.source / "notes") as source:
        source.delete(["d7", "d501"])
        source.add(topic_records(9, 3, 600))
    world.back_up()
    assert index.refresh()
    assert world.is_equal(index)
    shutil.rmtree(world.machines[0])
    cluster.restart(1)
    assert world.is_equal(index)


def test_a_partition_that_is_there_needs_no_repository(world):
    start, folder = world.host(world.machines[0])
    start()
    before = (folder / "manifest.json").stat()
    shutil.rmtree(world.kept)
    host = start()
    host.refresh()
    assert (folder / "manifest.json").stat().st_ino == before.st_ino


def test_a_damaged_piece_is_named_and_nothing_is_opened(world):
    start, folder = world.host(world.machines[0])
    (copy,) = Repository(world.kept).read(Repository(world.kept).find()).indexes.values()
    piece = copy.builds[2].generation["manifest.json"].pieces[0]
    file = world.kept + "/objects/" + piece
    with open(file, "r+b") as stream:
        content = stream.read()
        stream.seek(0)
        stream.write(b"X")
    with pytest.raises(IndexDamaged, match=f"{piece}` has changed"):
        start()
    assert not folder.exists()
    with open(file, "wb") as stream:
        stream.write(content)
    start()


def test_an_interrupted_copy_is_repeated(world, monkeypatch):
    start, folder = world.host(world.machines[0])

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("klsa_search.storage.restore.commit", die)
        patched.setattr("klsa_search.storage.directories.collect_garbage", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            start()
    assert folder.is_dir()
    assert not (folder.parent / "CURRENT").exists()
    (folder / "documents.sqlite").unlink(missing_ok=True)
    assert start().ready()


def test_hosts_of_one_machine_copy_a_partition_once(world, monkeypatch):
    start, _ = world.host(world.machines[0])
    copied, fetch = [], Repository.fetch

    def counted(self, file, path, own=None):
        copied.append(path.name)
        fetch(self, file, path, own)

    monkeypatch.setattr(Repository, "fetch", counted)
    with ThreadPoolExecutor(2) as pool:
        hosts = [pool.submit(start) for _ in range(2)]
        assert len({host.result().refresh() for host in hosts}) == 1
    assert (copied.count("documents.npy"), copied.count("terms.npy")) == (1, 1)


def test_a_build_that_no_backup_has_is_an_error(world):
    _, folder = world.host(world.machines[0])
    with pytest.raises(IndexNotFound, match=r"no backup at .* has partition `000001-1`"):
        restore_partition(Repository(world.kept), folder.parent, "other")


def test_a_relative_repository_is_found_from_any_folder(world, tmp_path, monkeypatch):
    generation = documents_of(current_build(world.front / "notes"))[0]
    monkeypatch.chdir(tmp_path)
    (followed,) = followed_builds([generation], "kept", every=0)
    monkeypatch.chdir("/")
    assert Repository(followed.repository).names()
    (followed,) = followed_builds([generation], "s3://bucket/klsa", every=0)
    assert followed.repository == "s3://bucket/klsa"
