"""Passages are built, described, backed up, verified and repaired with their documents."""

import shutil
from contextlib import closing

import pytest

from klsa_search import build, open_index
from klsa_search.collection import open_collection
from klsa_search.core.progress import PHASES, passage_phase
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.errors import IndexDamaged, QueryError, SettingsError
from klsa_search.indexing import plan, verify_deep
from klsa_search.indexing.build import plan_of_size
from klsa_search.indexing.rewrite import repair
from klsa_search.search.state.passages import PassageSearcher, PassageWrites
from klsa_search.search.state.state import open_state
from klsa_search.storage.backup import back_up
from klsa_search.storage.current import current_build
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.partitions import documents_of
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow
from tests.support.worlds import random_documents


def documents(count, seed=3, first=0):
    texts = random_documents(count, 60, seed=seed)
    return [
        {
            "id": f"d{first + n}",
            "title": f"Part {n}",
            "text": f"{text}. {text[::-1]}. " * (1 + n % 3),
        }
        for n, text in enumerate(texts)
    ]


@pytest.fixture(scope="module", params=[1, 2])
def built(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("passages")
    options = {"passages": 20, "dimensions": 5, "partitions": request.param, "workers": 1}
    build(documents(20), name="long", home=home, **options).close()
    return home / "long"


@pytest.fixture
def path(built, tmp_path):
    return shutil.copytree(built, tmp_path / "home" / "long")


def passage_files(path):
    """Names of the files of passages of each partition in use."""
    manifests = map(read_manifest, documents_of(current_build(path)))
    return [
        [name for name in manifest.files if name.startswith("passages/")] for manifest in manifests
    ]


def answers(path):
    with closing(open_index(path)) as index:
        query = " ".join(documents(1)[0]["text"].split()[:4])
        return [index.search(query, k=50, group=group).hits for group in ("document", "passage")]


def written(path):
    with closing(open_index(path)) as index:
        index.add(documents(150, seed=4, first=100))
        index.delete(["d1", "d3"])
    return path


def test_passages_are_counted_and_their_phases_named(tmp_path):
    phases = {}

    def report(phase, done, total):
        phases[phase] = done, total

    options = {"home": tmp_path, "progress": report}
    with closing(build(documents(9), name="a", passages=20, **options)) as index:
        counted = index.manifest.counts.passages
        state = open_state(index.path)
        assert counted == len(state.passages.document_of) > 9
    assert phases["passages"] == (counted, counted)
    first = [phase for phase in PHASES if phase in phases]
    second = [passage_phase(phase) for phase in first[:-1]]
    assert list(phases) == [*first[:-1], *second, first[-1]]
    with closing(build(documents(9), name="b", passages="off", **options)) as index:
        assert read_manifest(index.path).counts.passages is None


@pytest.mark.slow
def test_passages_are_restored_and_followed(path, tmp_path):
    repository = Repository(str(tmp_path / "backups"))
    for change in (lambda: path, lambda: written(path)):
        change()
        back_up(repository, path.parent)
        follow(repository, tmp_path / "follower")
        assert answers(tmp_path / "follower" / "long") == answers(path)


@pytest.mark.parametrize(
    ("built", "name"),
    [(1, "manifest.json"), (1, "documents_keys.npy"), (2, None)],
    indirect=["built"],
)
def test_damaged_passages_are_named_and_built_again(path, name, built):
    folder = documents_of(current_build(path))[0] / "passages"
    if name is None:
        shutil.rmtree(folder)
    else:
        content = bytearray((folder / name).read_bytes())
        content[-2] ^= 1
        (folder / name).write_bytes(content)
    with pytest.raises(IndexDamaged, match=f"passages/{name or ''}.*repair long --home"):
        open_index(path)
    with closing(repair(path).index):
        assert passage_files(path) == passage_files(built)
    assert answers(path) == answers(built)


@pytest.mark.parametrize("built", [1], indirect=True)
def test_passages_are_compared_with_their_documents(path, monkeypatch):
    verify_deep(written(path))
    of = PassageWrites.of
    monkeypatch.setattr(PassageWrites, "of", lambda self, write: of(self, write)[:-1])
    with pytest.raises(IndexDamaged, match="is not that of its document"):
        verify_deep(path)


def test_the_layout_of_passages_is_chosen_for_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr("klsa_search.indexing.weighing.SMALL", 20)
    with closing(build(documents(20), name="few", home=tmp_path, passages=20)) as index:
        files = index.manifest.files
        assert "eigenvectors.npy" in files
        assert "passages/eigenvectors.npy" not in files
        state = open_state(index.path)
        assert isinstance(state.searcher, PassageSearcher)
        assert index.search(documents(1)[0]["text"], group="passage").hits
        assert index.search(documents(1)[0]["text"])[0].id == "d0"


@pytest.mark.slow
def test_a_write_of_any_number_of_passages_is_folded_once(path, monkeypatch):
    monkeypatch.setattr("klsa_search.delta.segment.BLOCK", 16)
    with closing(open_index(path)) as index:
        index.add(documents(30, seed=4, first=100))
        query = documents(1)[0]["text"]
        expected = index.search(query, group="passage").hits
    folded, fold = [], DeltaBuilder.fold

    def counted(builder, documents):
        folded.append(len(documents))
        return fold(builder, documents)

    monkeypatch.setattr(DeltaBuilder, "fold", counted)
    with closing(open_index(path)) as index:
        assert index.search(query, group="passage").hits == expected
    assert all(count < 16 for count in folded)  # the last block of documents, and of passages
    assert len(folded) <= 4


def test_refusals_name_the_index(path):
    with closing(open_index(path)) as index:
        index.delete(["d0"])
        for group in ("document", "passage"):
            with pytest.raises(QueryError, match="index `long`"):
                index.search("part", group=group, dimensions=3)


def test_a_plan_has_the_passages_of_the_build(built):
    manifest = read_manifest(built / "000001")
    size = plan(open_collection(documents(20)), dimensions=5, passages=20).size
    assert size.passages == manifest.counts.passages
    assert plan(open_collection(documents(20)), passages="off").size.passages == 0


def test_a_plan_of_a_size_has_passages_of_long_documents():
    assert 150_000 < plan_of_size(20_000, 3_000).size.passages < 250_000
    assert plan_of_size(20_000, 100).size.passages == 0


def test_too_many_passages_are_refused_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "klsa_search.indexing.checks.memory_needed",
        lambda size, _: 2**40 if size.documents > 20 else 1,
    )
    with pytest.raises(SettingsError, match=r"passages need .* set passages = 'off'"):
        build(documents(20), name="many", home=tmp_path, passages=20)
