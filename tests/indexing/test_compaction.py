"""Compactions: the same answers, from one segment without deleted documents."""

import shutil
from contextlib import closing
from dataclasses import replace
from operator import eq

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.errors import PartitionsUnsupported
from klsa_search.indexing import compact, refit, verify_deep
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.storage.backup import back_up
from klsa_search.storage.maintenance import rollback, verify
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import restore_index
from klsa_search.storage.write_log import WriteLog
from tests.storage.test_kills import Killed, dying
from tools.golden.answers import lines_of
from tools.golden.world import WORLDS, Question, documents, questions

EXACT = {"explain", "quality", "exact", "boosts", "alpha", "z", "min_score"}
"""Options of golden questions that read other scores than those of BM25."""


def make_written(home):
    return WORLDS["written"].make(home)


def make_passages(home):
    index = WORLDS["passages"].make(home)
    given = documents(140, sentences=40)
    index.delete([one.id for one in given[::9]])
    index.add([replace(one, text=f"{one.text} Mended engines.") for one in given[4::11]])
    index.add([replace(one, id=f"later-{one.id}") for one in given[::20]])
    return index


def make_vectors(home):
    index = WORLDS["vectors"].make(home)
    index.delete(index.ids()[::7])
    ids = index.ids()
    index.add([replace(index.document(id_), id=f"later-{id_}") for id_ in ids[1::8]])
    index.patch(ids[2], {"year": 2030})
    return index


MADE = {"written": make_written, "passages": make_passages, "vectors": make_vectors}


@pytest.fixture(scope="module", params=sorted(MADE))
def world(request, tmp_path_factory):
    """The name of an index with writes, and its folder; tests copy it."""
    home = tmp_path_factory.mktemp("world")
    MADE[request.param](home).close()
    return request.param, home / request.param


@pytest.fixture
def path(world, tmp_path):
    """A copy of it."""
    name, folder = world
    shutil.copytree(folder, tmp_path / name)
    return tmp_path / name


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    home = tmp_path_factory.mktemp("written")
    make_written(home).close()
    return home / "written"


@pytest.fixture
def copy(written, tmp_path):
    """A copy of an index with writes, without passages and vectors."""
    shutil.copytree(written, tmp_path / "written")
    return tmp_path / "written"


def asked(path, **options):
    """The answers to the golden questions, as lines; without qualities, which are learned."""
    name = path.name
    asked = questions(vectors=name == "vectors", passages=name == "passages")[:210:3]
    left = EXACT if options else {"quality"}
    asked = [
        Question(one.text, {k: v for k, v in one.options.items() if k not in left} | options)
        for one in asked
    ]
    with closing(open_index(path)) as index:
        return list(lines_of(index, asked))


def test_bm25_has_the_same_answers(path):
    before = asked(path, ranker="bm25")
    compact(path).close()
    assert asked(path, ranker="bm25") == before


@pytest.mark.slow
def test_the_default_is_the_same_if_no_row_of_d_changes(tmp_path):
    """Later documents of other words are in no row of the build; and no one else's was deleted."""
    home = tmp_path / "home"
    index = build(documents(), name="written", home=home)
    given = [{"id": f"q{n}", "text": f"qoph{n % 3} qaf{n % 5} quux{n % 7}"} for n in range(40)]
    index.add(given)
    index.delete([one["id"] for one in given[::3]])
    index.close()
    before = asked(home / "written")
    compact(home / "written").close()
    assert asked(home / "written") == before


@pytest.mark.slow
def test_the_default_is_about_the_same(path):
    """Rows of D changed, so coverage and expansion did."""
    before = [first_of(line) for line in asked(path)]
    compact(path).close()
    after = [first_of(line) for line in asked(path)]
    assert sum(map(eq, before, after)) >= 0.9 * len(before)


def first_of(line):
    """The first hit of an answer."""
    return line.split("\t")[1].partition(":")[0]


def test_the_new_generation_is_whole(path):
    with closing(open_index(path)) as index:
        ids, drift, fields = index.ids(), index.drift, dict(index.type_mismatches)
        held, spaces = index.documents_at(index.doc_ids(ids)), index.vector_spaces
        passages = index.passage_count
    with closing(compact(path)) as index:
        assert index.generation == "000002"
        assert index.ids() == ids
        assert index.documents_at(index.doc_ids(ids)) == held
        assert index.last_write.seq == 0
        assert (index.segments, index.max_doc) == (1, len(ids))
        assert index.passage_count == passages
        assert index.vector_spaces == spaces
        assert index.type_mismatches == fields
        now = index.drift
        assert (now.added, now.deleted) == (drift.added, drift.deleted)
        assert (now.words, now.unseen, now.passed) == (drift.words, drift.unseen, 0)
    assert not [*path.glob("000002/**/delta-*")]
    verify_deep(path)


def test_later_changes_of_a_compacted_index(copy, tmp_path):
    """It is written to, verified, compacted again, backed up, rolled back and refitted."""
    compact(copy).close()
    with closing(open_index(copy)) as index:
        index.add([{"id": "new", "text": "a camshaft of quinces"}])
        index.delete(["ga3", index.ids()[0], index.ids()[-2]])
        index.patch(index.ids()[1], {"year": 2031})
        ids, drift = index.ids(), index.drift
        assert index.search("quinces")[0].id == "new"
        lexical = ranked(index)
    verify_deep(copy)
    assert rollback(copy).now == "000001"
    assert rollback(copy, "000002").now == "000002"
    with closing(compact(copy)) as index:
        assert (index.generation, index.ids()) == ("000003", ids)
        assert (index.drift.added, index.drift.deleted) == (drift.added, drift.deleted)
        assert ranked(index) == lexical
        assert index.search("quinces")[0].id == "new"
    verify_deep(copy)
    back_up(Repository(str(tmp_path / "backups")), copy.parent)
    restore_index(Repository(str(tmp_path / "backups")), "written", tmp_path / "other" / "written")
    verify_deep(tmp_path / "other" / "written")
    with closing(refit(copy)) as index:
        assert (index.ids(), index.drift.added, index.manifest.trained) == (ids, 0, None)


def test_later_versions_with_the_same_words_stay_in_the_training(copy):
    with closing(open_index(copy)) as index:
        before, ids = index.drift, index.ids()
        index.patch_many([{"id": id_, "price": 5} for id_ in ids[::2]])
        index.patch(ids[0], {"text": "a camshaft of quinces"})
        drift = index.drift
        assert drift.added + drift.deleted <= before.added + before.deleted + 2
    for price in (6, 7):
        with closing(compact(copy)) as index:
            now = index.drift
            assert (now.added, now.deleted) == (drift.added, drift.deleted)
            assert (now.words, now.unseen) == (drift.words, drift.unseen)
            index.patch_many([{"id": id_, "price": price} for id_ in index.ids()])
            assert replace(index.drift, bytes=0) == replace(now, bytes=0)
    verify_deep(copy)


def ranked(index):
    words = ("engine coolant", "storm forecast rainfall", "mended quinces", "the garden")
    return [[(hit.id, hit.score) for hit in index.search(q, 50, ranker="bm25")] for q in words]


def test_nothing_of_a_deleted_document_stays(tmp_path):
    """Not its text, nor words that only it had, of the build or of a later document."""
    home = tmp_path / "home"
    index = build(documents()[:40], name="it", home=home)
    index.close()
    secrets = ["quetzalcoatl", "xylophagous", "zymurgical"]
    given = [{"id": word, "text": f"the {word} engine", "tag": word} for word in secrets]
    index = build([*documents()[:40], *given[:2]], name="it", home=home, replace=True)
    index.add([given[2], {"id": "kept", "text": "a wonderful wombat"}])
    index.delete(secrets)
    index.close()
    compact(home / "it").close()
    new = home / "it" / "000003"
    assert b"wombat" in (new / "vocabulary.txt").read_bytes()
    for file in new.iterdir():
        content = file.read_bytes()
        assert not [word for word in secrets if word.encode() in content], file
    with closing(open_index(home / "it")) as index:
        assert not [word for word in secrets if len(index.search(word, spelling="off"))]
        index.add(given)
        assert [index.search(word)[0].id for word in secrets] == secrets
    verify_deep(home / "it")


def test_rows_of_d_are_those_of_live_documents(copy):
    """Entries of deleted documents go; those of later documents count for both."""
    with closing(open_index(copy)) as index:
        before = entries_of(index)
        live = index.partitions[0].state().snapshot.live_docs()
        first_later = np.count_nonzero(live[: index.manifest.counts.documents])
    with closing(compact(copy)) as index:
        after = entries_of(index)
        assert [*after] == index.ids()
        later_ids = index.ids()[first_later:]
        width = index.partitions[0].state().snapshot.sparse_expansion.entries
    later = {(other, id_): value for id_, row in before.items() for other, value in row.items()}
    for id_, row in after.items():
        wanted = {other: value for other, value in before[id_].items() if other in after}
        wanted |= {d: later[id_, d] for d in later_ids if (id_, d) in later and d not in wanted}
        strongest = sorted(wanted.values(), reverse=True)[:width]
        step = strongest[0] / 250  # entries were rounded again
        assert sorted(row.values(), reverse=True) == pytest.approx(strongest, abs=step)
        assert all(row[other] == pytest.approx(wanted[other], abs=step) for other in row)


def entries_of(index):
    """The rows of D of the live documents of an index, by ID."""
    state = index.partitions[0].state()
    expansion, ids, live = state.snapshot.sparse_expansion, index.ids(), state.snapshot.live_docs()
    doc_ids = np.flatnonzero(live)
    by_doc_id = dict(zip(doc_ids.tolist(), ids, strict=True))
    rows, steps = expansion.rows(doc_ids), expansion.scales(doc_ids)[:, 0]
    assert (np.diff((rows & LEVELS).astype(int), axis=1) <= 0).all()
    return {
        id_: {by_doc_id.get(entry >> 8, entry): (entry & LEVELS) * step for entry in row if entry}
        for id_, row, step in zip(ids, rows.tolist(), steps.tolist(), strict=True)
    }


def test_writes_during_a_compaction_are_kept(copy):
    other, phases = open_index(copy), []

    def progress(phase, done, total):
        if phase not in phases:
            phases.append(phase)
            other.add([{"id": f"during-{len(phases)}", "text": "written meanwhile"}])
            other.delete([other.ids()[0]])

    before = len(other)
    again = compact(copy, progress=progress)
    assert len(phases) == 4
    assert (again.generation, len(again)) == ("000002", before)
    assert {f"during-{number}" for number in range(1, 5)} <= {*again.ids()}
    assert WriteLog(again.path).last().seq == 8
    assert other.refresh()
    assert (other.generation, other.ids()) == (again.generation, again.ids())
    other.close()
    again.close()
    verify_deep(copy)


@pytest.mark.slow
def test_a_compaction_killed_at_any_step(copy, tmp_path, monkeypatch):
    with closing(open_index(copy)) as index:
        ids = index.ids()
    for step in range(0, 1000, 4):
        path = tmp_path / str(step)
        shutil.copytree(copy, path)
        killed = False
        with dying(monkeypatch, step) as tried:
            try:
                compact(path)
            except Killed:
                killed = True
        with closing(open_index(path)) as index:
            assert index.ids() == ids
        verify(path)
        shutil.rmtree(path)
        if not killed:
            break
    assert len(tried) > 40


def test_an_index_without_later_writes_stays(tmp_path):
    home = tmp_path / "home"
    build(documents()[:20], name="it", home=home).close()
    with closing(compact(home / "it")) as index:
        assert (index.generation, len(index)) == ("000001", 20)


def test_an_empty_index(copy):
    with closing(open_index(copy)) as index:
        index.delete(index.ids())
    with closing(compact(copy)) as index:
        assert (len(index), index.max_doc, len(index.search("engine"))) == (0, 0, 0)
        index.add([{"id": "new", "text": "a camshaft engine"}])
        assert [hit.id for hit in index.search("engine")] == ["new"]
    verify_deep(copy)
    with closing(compact(copy)) as index:
        assert index.ids() == ["new"]


def test_names_of_unused_terms_stay_short(tmp_path):
    """Deleting everything, or ageing it out, leaves all terms of the training unused."""
    words = [f"w{number:04}" for number in range(4_000)]
    texts = [" ".join(words[first : first + 100]) for first in range(0, len(words), 100)]
    with build(texts, name="aged", home=tmp_path) as index:
        size = (index.path / "vocabulary.txt").stat().st_size
        index.delete(index.ids()[1:])
    for documents_left in (1, 0):
        with closing(compact(tmp_path / "aged")) as index:
            assert (index.path / "vocabulary.txt").stat().st_size < 4 * size
            assert index.search("w0000 w0099").total == documents_left
            index.delete(index.ids())


def test_partitions_are_refused(tmp_path):
    build(["one", "two"], name="parted", home=tmp_path, partitions=2, workers=1).close()
    with pytest.raises(PartitionsUnsupported, match="klsa-index refit parted"):
        compact(tmp_path / "parted")
