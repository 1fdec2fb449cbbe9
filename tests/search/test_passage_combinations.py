"""Passages together with undone writes, copies in other processes, mining and rules."""

import pickle
import shutil
from contextlib import closing

import pytest

from klsa_search import open_index
from klsa_search.collection import Judgement, Topic
from klsa_search.evaluation.systems import compare_rankers
from klsa_search.mining import classify, cluster, document_map, duplicates, similar
from klsa_search.storage.maintenance import undo_writes
from tests.search.test_passages import (
    DOCUMENTS,
    NEEDLE,
    RARE,
    built_in,
    contents,
    passages_of_all,
    text,
)


@pytest.fixture(scope="module", params=[1, 2])
def built(request, tmp_path_factory):
    return built_in(tmp_path_factory.mktemp("passages"), request.param)


@pytest.fixture
def index(built, tmp_path):
    with closing(open_index(shutil.copytree(built, tmp_path / "long"))) as opened:
        yield opened


def found(index, query="pumpa leakb"):
    hits = index.search(query, 50, group="passage")
    return [(hit.id, hit.score) for hit in hits]


def test_an_undone_batch_leaves_no_passages(index):
    before, ids = found(index), contents(index)
    index.add([{"id": "d0", "text": text(7, 30), "year": 2001}, {"id": "new", "text": RARE * 60}])
    assert found(index) != before
    undo_writes(index.path.parent, 1)
    index.refresh()
    assert (found(index), contents(index)) == (before, ids)


def test_a_pickled_index_finds_the_same_passages(index):
    index.add([{"id": "d0", "text": text(7, 30), "year": 2001}])
    with closing(pickle.loads(pickle.dumps(index))) as copy:
        assert found(copy) == found(index)


def test_a_snapshot_keeps_its_passages(index):
    snapshot, before = index.snapshot(), found(index)
    index.add([{"id": "d0", "text": text(7, 30), "year": 2001}])
    assert found(snapshot) == before != found(index)


def test_a_sync_replaces_the_passages_of_what_differs(index):
    changed = {"id": "d0", "title": "Part 0", "text": text(7, 30), "year": 2000}
    result = index.sync([*DOCUMENTS[1:], changed, NEEDLE])
    assert (result.changed, result.added, result.deleted) == (("d0",), (), ())
    assert contents(index) == passages_of_all(index)


@pytest.mark.parametrize("changes", [{"year": 2050}, {"text": f"{text(5, 40)} {RARE}"}])
def test_a_patch_reaches_all_passages(index, changes):
    index.patch("d3", changes)
    hits = index.search("", 99, group="passage", filter='id = "d3"')
    assert hits.total > 1
    assert "".join(hit.text for hit in hits).count("valve") == ("text" in changes)
    assert {hit.metadata["year"] for hit in hits} == {changes.get("year", 2003)}
    assert index.search("", group="passage", filter="year = 2050").total == (
        hits.total if "year" in changes else 0
    )


def test_mining_is_of_whole_documents(index):
    ids = set(index.ids())
    assert {hit.id for hit in similar(index, NEEDLE.id, 5)} < ids
    assert sum(each.size for each in cluster(index, 2).clusters) == len(index)
    assert document_map(index).doc_ids.tolist() == index.doc_ids(index.ids())
    assert [each.id for each in classify(index, {"d0": "a", "d3": "b"}, ["d1"])] == ["d1"]
    index.add([{"id": "copy", "text": NEEDLE.text, "title": NEEDLE.title}])
    groups = [{each.id for each in group.documents} for group in duplicates(index)]
    assert {"copy", NEEDLE.id} in groups


def test_judgements_of_documents_measure_passages(index):
    query = [Topic(id="q", text=RARE)]
    judged = [Judgement(query_id="q", document_id=NEEDLE.id, grade=1, gain=1)]
    measured, _ = compare_rankers(index, query, judged, ["bm25", "klsa"])
    assert [each.values("map") for each in measured.values()] == [[1], [1]]


def test_rules_hide_and_boost_passages_and_pin_documents_only(index):
    rules = [
        {"id": "r", "when": {"query_contains": RARE}, "then": {"hide": [NEEDLE.id]}},
        {"id": "s", "when": {"query_contains": "pumpa"}, "then": {
            "pin": [{"id": "d1", "position": 1}],
            "boost": [{"filter": "year = 2001", "factor": 100}],
        }},
    ]  # fmt: skip
    plain = index.search("pumpa", 50, group="passage")
    index.set_rules(rules)
    assert NEEDLE.id not in {hit.document_id for hit in index.search(RARE, 50, group="passage")}
    assert NEEDLE.id in {
        hit.document_id for hit in index.search(RARE, 50, group="passage", rules=False)
    }
    boosted = index.search("pumpa", 50, group="passage", explain=True)
    assert boosted.total == plain.total
    years = [hit.metadata["year"] == 2001 for hit in boosted]
    assert years == sorted(years, reverse=True)
    assert boosted[0].explanation.rules[0].action == "boost"
    assert index.search("pumpa")[0].id == "d1"


def test_a_search_of_many_is_that_of_each(index):
    queries = ["pumpa", RARE]
    together = index.search_many(queries, 5, group="passage", max_tokens=200)
    alone = [index.search(each, 5, group="passage", max_tokens=200) for each in queries]
    assert [result.hits for result in together] == [result.hits for result in alone]
    assert [result.truncated for result in together] == [True, True]
