"""An index in partitions: the same words weigh the same, and a search sees all documents."""

import json
import pickle
import shutil

import numpy as np
import pytest

from klsa_search import Query, build, open_index
from klsa_search._native import share_seeds
from klsa_search.core.array_types import SortedTexts
from klsa_search.errors import DocumentNotFound, IndexDamaged, QueryError, SettingsError, StoreError
from klsa_search.indexing import refit, repair
from klsa_search.search.engine.evidence import SharedAnswers
from klsa_search.search.engine.mask import Mask
from klsa_search.search.parts.merged_search import plan_and_seeds
from klsa_search.search.parts.merging import merged_order
from klsa_search.search.parts.part_search import PartPage, PartRequest, PartSearch
from klsa_search.search.parts.part_set import LocalSearches
from klsa_search.search.parts.reading import positions_of
from klsa_search.search.rankers.klsa import klsa_params
from klsa_search.storage.partitions import partition_of
from tests.oracle.ranking import Oracle
from tests.support.worlds import TOPIC_QUERIES, topic_records

COUNT = 300


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("partitions")


@pytest.fixture(scope="module")
def one(home):
    with build(topic_records(COUNT), name="one", home=home) as index:
        yield index


@pytest.fixture(scope="module")
def three(home):
    with build(topic_records(COUNT), name="three", home=home, partitions=3, workers=1) as index:
        yield index


def by_id(found):
    """Return IDs and scores, ordered by ID among equal scores.

    Documents that are written later are not in the same order in any number of partitions.
    """
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def scores(index, query, **options):
    """Return IDs and scores of all hits, in order."""
    return [(hit.id, hit.score) for hit in index.search(query, 300, **options).hits]


@pytest.mark.parametrize("boosts", [{}, {"boosts": "title^3"}])
def test_bm25_is_that_of_one_partition_to_the_bit(one, three, boosts):
    for query in TOPIC_QUERIES:
        expected, found = (scores(index, query, ranker="bm25", **boosts) for index in (one, three))
        assert found == expected


def test_the_default_finds_the_same(one, three):
    """But for weights of features, which partitions round to 8 bits before they compute rows."""
    for query in TOPIC_QUERIES:
        first, found = dict(scores(one, query)[:20]), dict(scores(three, query)[:20])
        assert len(first.keys() & found.keys()) >= 0.9 * len(first)
        for id_ in list(first)[:10]:
            assert found[id_] == pytest.approx(first[id_], rel=0.1)
        assert one.search(query).total == pytest.approx(three.search(query).total, rel=0.05)


def test_one_call_finds_what_the_rounds_find(three, tmp_path, monkeypatch):
    """A query by words alone is one call of the engine over all partitions of a process."""
    later = topic_records(60, seed=3)
    with open_index(shutil.copytree(three.path.parent, tmp_path / "calls")) as index:
        for written in ([], [{**record, "id": f"later {record['id']}"} for record in later]):
            index.add(written)
            index.delete(["d3", "d50", "d51"] if written else [])
            searches = [
                (query, k) for query in (*TOPIC_QUERIES, "no such word", "the") for k in (3, 400)
            ]
            at_once = [results_of(index, *search) for search in searches]
            with monkeypatch.context() as patched:
                patched.setattr(LocalSearches, "at_once", lambda searches, request: None)
                in_rounds = [results_of(index, *search) for search in searches]
            assert at_once == in_rounds


def test_any_number_of_hits_may_be_asked_for(three):
    query = TOPIC_QUERIES[0]
    assert results_of(three, query, 10**11) == results_of(three, query, COUNT)


def test_errors_name_the_index(three):
    with pytest.raises(QueryError, match=r"index `three` does not have"):
        three.search("word01", dimensions=10**9)


def results_of(index, query, k):
    """Return the total, and ID, score and rank of all hits."""
    results = index.search(query, k)
    return results.total, [(hit.id, hit.score, hit.rank) for hit in results.hits]


@pytest.mark.parametrize("view", [None, "year >= 2003"])
def test_masks_of_fields_are_of_all_documents(one, three, tmp_path, view):
    copies = [shutil.copytree(each.path.parent, tmp_path / each.name) for each in (one, three)]
    with open_index(copies[0]) as first, open_index(copies[1]) as second:
        for written in (False, True):
            if written:
                for index in (first, second):
                    index.add([{"id": "later", "text": "word01", "year": 2005, "colour": "red"}])
                    index.delete(["d3", "d50"])
            pairs = [each if view is None else each.restricted(view) for each in (first, second)]
            masks = [index.fields["year"].between(2004) for index in pairs]
            fields = [index.fields["year"] for index in pairs]
            assert [len(mask) for mask in masks] == [first.max_doc, second.max_doc]
            assert masks[0].sum() == masks[1].sum() > 0
            assert fields[0].missing == fields[1].missing
            expected, found = (
                sorted(hit.id for hit in index.search("word01", 300, mask=mask, ranker="bm25"))
                for index, mask in zip(pairs, masks, strict=True)
            )
            assert found == expected != []


def test_rows_cross_partitions(one, three):
    """The neighbours of a document are those of an index with one partition."""
    assert len(three.partitions) > 1
    ids, agree, whole = three.ids(), 0, 0
    for partition in three.partitions:
        snapshot = partition.state().snapshot
        rows = snapshot.klsa_engine.rows(np.arange(len(snapshot)))
        for doc_id, id_ in enumerate(partition.ids()):
            levels = rows.levels[doc_id].astype(int)
            assert (np.diff(levels) <= 0).all()
            near = {ids[ordinal] for ordinal in rows.documents[doc_id][levels > 0].tolist()}
            assert id_ not in near
            expected = set(one.ids(one.arrays.nearest(*one.doc_ids([id_])).tolist()))
            agree, whole = agree + len(near & expected), whole + len(expected)
    assert agree >= 0.97 * whole


@pytest.mark.parametrize("filtered", [False, True])
def test_the_engine_ranks_as_the_oracle(three, filtered):
    assert len(three.partitions) > 1
    for query in TOPIC_QUERIES:
        request = PartRequest(Query(query, 20), {}, ranks_only=True)
        states = [partition.state() for partition in three.partitions]
        searches = LocalSearches(states, SharedAnswers())
        _, shared = plan_and_seeds(searches, request, three.name)
        for state, (seeds,) in zip(states, shared, strict=True):
            snapshot = state.snapshot
            assert len(seeds.remote)
            engine, params = snapshot.klsa_engine, klsa_params(snapshot, three.parameters())
            numbers = snapshot.vocabulary.numbers
            terms = [numbers[word] for word in query.split() if word in numbers]
            mask = Mask(np.arange(len(snapshot)) % 3 > 0) if filtered else None
            oracle = Oracle(snapshot)
            plain = oracle.top(terms, 20, params, mask, seeds)
            found = engine.top_shared(terms, 20, params, seeds, mask, totals=True)
            assert found.doc_ids.tolist() == plain.doc_ids.tolist()
            assert found.scores.tolist() == plain.scores.tolist()
            assert found.total == plain.total
            begun = engine.seeds(terms, params)
            again = engine.top_shared(terms, 20, params, seeds, mask, totals=True, local=begun)
            assert again.total == found.total
            assert again.scores.tolist() == found.scores.tolist()
            assert again.doc_ids.tolist() == found.doc_ids.tolist()
            other = min(set(range(99)) - {*terms})
            for others in ([*terms, terms[0]], [other, *terms[1:]]):
                with pytest.raises(ValueError, match="local: not the seeds of this query"):
                    engine.top_shared(others, 20, params, seeds, local=begun)
            doc_ids, steps, impacts = oracle.best(terms, params)
            assert begun.doc_ids.tolist() == doc_ids.tolist()
            assert begun.steps.tolist() == steps.tolist()
            assert begun.ordinals.tolist() == snapshot.ordinals_of(doc_ids).tolist()
            assert begun.impacts.tolist() == impacts.ravel().tolist()


@pytest.mark.slow
def test_passages_rank_by_bm25_as_in_one_partition_to_the_bit(tmp_path):
    records = [
        {**record, "text": f"{record['text']} " * (1 + number % 4)}
        for number, record in enumerate(topic_records(60))
    ]
    later = [{**record, "id": f"later{record['id']}"} for record in records[:9]]
    answers_by_count, options = [], {"passages": 10, "workers": 1}
    for partitions in (1, 2, 4):
        name = f"in{partitions}"
        with build(records, name=name, home=tmp_path, partitions=partitions, **options) as index:
            answers = []
            for write in (None, later):
                if write is not None:
                    index.add(write)
                    index.delete([record["id"] for record in records[20:30]])
                for query in TOPIC_QUERIES:
                    for group in ("document", "passage"):
                        hits = index.search(query, 300, ranker="bm25", group=group)
                        scores = [(hit.id, hit.score) for hit in hits]
                        answers.append((hits.total, scores if write is None else by_id(scores)))
            assert index.passage_count
            answers_by_count.append((index.passage_count, answers))
    assert answers_by_count[0] == answers_by_count[1] == answers_by_count[2]


def test_seeds_are_the_same_after_pickling(three):
    states = [partition.state() for partition in three.partitions]
    for explain in (False, True):
        request = PartRequest(Query(TOPIC_QUERIES[0], 20, explain=explain), {}, ranks_only=True)
        begun = [PartSearch(state, request).begin() for state in states]
        candidates = [plan.seeds[0] for plan in begun]
        local = [one_part.seeds for one_part in candidates]
        shared = share_seeds(local, candidates[0].params, candidates[0].step)
        for seeds in (*local, *shared):
            packed = pickle.dumps(seeds)
            assert pickle.dumps(pickle.loads(packed)) == packed
            assert explain == bool(pickle.loads(packed).names)
            bytes_ = seeds.__getstate__()
            for size in range(0, len(bytes_), 97):
                with pytest.raises(ValueError, match="bytes are missing"):
                    type(seeds).__new__(type(seeds)).__setstate__(bytes_[:size])


@pytest.mark.slow
def test_partitions_leave_out_the_same_words_of_a_long_query(home):
    """A whole document as query: more than 256 words."""
    made = topic_records(60)
    made.append({"id": "long", "text": " ".join(f"term{number}" for number in range(300))})
    options = {"spelling": "off", "operators": False}
    query = made[-1]["text"] + " word01 word05" * 6
    with (
        build(made, name="long1", home=home) as one,
        build(made, name="long3", home=home, partitions=3, workers=1) as three,
    ):
        expected, found = (dict(scores(index, query, **options)) for index in (one, three))
        assert next(iter(found)) == next(iter(expected)) == "long"
        assert {"d13", "d8"} <= found.keys() & set(list(expected)[:10])
        said = [index.search(query, **options).interpretation for index in (one, three)]
        assert len(said[0].left_out) == 46
        assert said[0] == said[1]


@pytest.mark.slow
def test_partitions_smaller_than_the_number_of_seeds(home):
    made = topic_records(40)
    with (
        build(made, name="small1", home=home) as one,
        build(made, name="small8", home=home, partitions=8, workers=1) as eight,
    ):
        for query in TOPIC_QUERIES:
            first, found = dict(scores(one, query)[:10]), dict(scores(eight, query)[:10])
            assert len(first.keys() & found.keys()) >= 8
    many = [{"id": str(number), "text": "word01"} for number in range(1501)]
    with (
        build(many, name="seeds", home=home, partitions=2, workers=1) as two,
        pytest.raises(QueryError, match="at most 1500 seeds"),
    ):
        two.search("word01", z=1501)


def test_explanations_add_up_and_name_documents_of_other_partitions(three):
    assert len(three.partitions) > 1
    names = set()
    for query in TOPIC_QUERIES:
        for hit in three.search(query, 10, explain=True).hits:
            told = hit.explanation
            assert told.expansion is not None
            assert total(told) == pytest.approx(hit.score, rel=1e-4)
            names |= {
                (partition_of(hit.id, 3), partition_of(each.id, 3))
                for term in told.coverage.terms
                for each in term.neighbours
            }
    assert len({own for own, other in names if own != other}) == 3


def total(found):
    """Return the sum of the parts of a score."""
    assert found.lexical is not None
    parts = (found.lexical, found.coverage, found.latent, found.expansion)
    return sum(part.value for part in parts if part is not None)


def test_one_document_is_explained_as_among_the_hits(three):
    first, *_, last = three.search("word01 word05", 40, explain=True).hits
    for hit in (first, last):
        found = three.explain("word01 word05", hit.id)
        assert found.score == pytest.approx(hit.score, rel=1e-2)
        assert total(found) == pytest.approx(found.score, rel=1e-5)
    assert three.explain("word01 word05", first.id) == first.explanation
    with pytest.raises(DocumentNotFound):
        three.explain("word01", "nothing")
    bm25 = three.explain("word01 word05", first.id, ranker="bm25")
    assert bm25.lexical.value == pytest.approx(bm25.score)


@pytest.mark.slow
def test_a_document_found_by_seeds_of_other_partitions_alone_is_explained(home):
    """No document of its partition contains a word of the query."""
    made = topic_records(120)
    seed = made[0]
    seed["text"] += " zebra"
    with build(made, name="zebra", home=home, partitions=3, workers=1) as index:
        hits = index.search("zebra", 60, explain=True).hits
    found = [hit for hit in hits if partition_of(hit.id, 3) != partition_of(seed["id"], 3)]
    assert len(found) > 5
    for hit in found:
        assert hit.explanation is not None
        assert total(hit.explanation) == pytest.approx(hit.score, rel=1e-4)


def test_one_engine_in_two_steps_is_the_engine(one):
    """Seeds of a single partition give the ranking of an undivided index."""
    snapshot = one.arrays
    params = klsa_params(snapshot, one.parameters())
    engine = snapshot.klsa_engine
    numbers = snapshot.vocabulary.numbers
    for query in TOPIC_QUERIES:
        terms = [numbers[word] for word in query.split() if word in numbers]
        (whole,) = engine.top([terms], 10, params, totals=True)
        local = engine.seeds(terms, params)
        assert local is not None
        (shared,) = share_seeds([local], params, snapshot.query_kernel.postings.step)
        assert shared is not None
        found = engine.top_shared(terms, 10, params, shared, totals=True)
        assert found.doc_ids.tolist() == whole.doc_ids.tolist()
        assert found.scores.tolist() == whole.scores.tolist()
        assert found.total == whole.total


def test_buffers_are_no_larger_than_the_index(one):
    snapshot = one.arrays
    all_, more = (
        klsa_params(snapshot, one.parameters())._replace(best=best) for best in (COUNT, 10**15)
    )
    terms = [snapshot.vocabulary.numbers[word] for word in TOPIC_QUERIES[0].split()]
    expected, found = (snapshot.klsa_engine.top([terms], 10, params) for params in (all_, more))
    assert found[0].scores.tolist() == expected[0].scores.tolist()
    by_all, by_more = (snapshot.klsa_engine.seeds(terms, params) for params in (all_, more))
    assert by_more.doc_ids.tolist() == by_all.doc_ids.tolist()


@pytest.mark.slow
def test_a_training_on_a_sample_changes_no_score_of_bm25(home, monkeypatch):
    """Words that the sample lacks have numbers of their own in each partition."""
    monkeypatch.setattr("klsa_search.indexing.partitions.MOST", 20)
    made = [
        {**document, "text": f"{document['text']} only{number} some{number % 40}"}
        for number, document in enumerate(topic_records(200))
    ]
    pair = [
        build(made, name=f"sampled{count}", home=home, partitions=count, workers=1)
        for count in (1, 3)
    ]
    for query in (*TOPIC_QUERIES, "only7", "only8 some8", "some3 some4 word01", "only150 only151"):
        expected, found = (scores(index, query, ranker="bm25", spelling="off") for index in pair)
        assert found == expected
        assert {hit.id for hit in pair[1].search(query, spelling="off").hits}
    for index in pair:
        index.close()


def test_filters_facets_sorting_and_pages(one, three):
    options = {"filter": "year >= 2010", "facets": ["kind"]}
    options["disjunctive_facets"] = ["year"]
    ours = three.search("word01 word13", 10, ranker="bm25", **options)
    theirs = one.search("word01 word13", 10, ranker="bm25", **options)
    assert ours.total == theirs.total
    assert ours.facets == theirs.facets
    assert [hit.score for hit in ours.hits] == [hit.score for hit in theirs.hits]
    for sort in (["year:desc"], ["kind:asc", "year:desc"]):
        ours = three.search("word01 word13", 15, ranker="bm25", sort=sort)
        theirs = one.search("word01 word13", 15, ranker="bm25", sort=sort)
        assert [(hit.metadata["kind"], hit.metadata["year"], hit.score) for hit in ours.hits] == [
            (hit.metadata["kind"], hit.metadata["year"], hit.score) for hit in theirs.hits
        ]
    whole = [hit.id for hit in three.search("word01", 20, ranker="bm25").hits]
    pages = [
        hit.id
        for offset in (0, 10)
        for hit in three.search("word01", 10, offset=offset, ranker="bm25").hits
    ]
    assert pages == whole
    assert [hit.rank for hit in three.search("word01", 5, offset=5).hits] == [6, 7, 8, 9, 10]


def test_facets_order_dates_as_moments(tmp_path):
    moments = [
        "2024-03-01T00:00:00Z", "2024-03-01T00:00:00.5Z", "2024-03-01T00:00:00.000001Z",
        "9999-12-31T23:00:00-05:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+05:00",
        "0001-01-01",
    ]  # fmt: skip
    made = [{"id": f"d{n}", "text": "word01", "when": moments[n % 7]} for n in range(21)]
    facets = []
    for count in (1, 2):
        name = f"moments{count}"
        with build(made, name=name, home=tmp_path, partitions=count, workers=1) as index:
            facets.append(index.search("word01", facets=["when"]).facets["when"])
    assert facets[1] == facets[0]
    assert len(facets[0].values) == 7


def test_equal_values_are_ordered_by_score_if_the_query_has_a_code(tmp_path):
    made = [
        {"id": "code", "text": "E-1043/2 " + "filler words of many kinds " * 9, "n": 1},
        {"id": "rare", "text": "zebra zebra", "n": 1},
        {"id": "third", "text": "something else", "n": 2},
        *({"id": f"x{number}", "text": "other things", "n": 3} for number in range(5)),
    ]
    for count in (1, 2, 3):
        name = f"code{count}"
        with build(made, name=name, home=tmp_path, partitions=count, workers=1) as index:
            orders = [
                ({}, ["code", "rare"]),
                ({"sort": ["n"]}, ["rare", "code"]),
                ({"sort": ["n:desc"]}, ["rare", "code"]),
                ({"sort": ["n"], "distinct": "n"}, ["rare"]),
            ]
            for options, expected in orders:
                hits = index.search("zebra E-1043/2", k=2, ranker="bm25", **options).hits
                assert [hit.id for hit in hits] == expected


def test_documents_are_in_the_order_of_the_source(one, three):
    assert three.ids() == one.ids()
    assert list(three.live_documents()) == list(one.live_documents())


def test_a_query_that_is_an_id_changes_no_other_order(home):
    """A filter may hide the document, and fields order it like any other."""
    made = topic_records(9)
    made += [
        {"id": f"e{number}", "text": "d4 " * (1 + number % 4) + "word01", "year": 2010 + number}
        for number in range(20)
    ]
    other = next(id_ for n in range(9) if partition_of(id_ := f"x{n}", 3) != partition_of("d4", 3))
    made.append({"id": other, "text": "d4 d4 d4 d4", "year": 2040})
    every = [{}, {"filter": "year != 2004"}, {"sort": ["year:desc"]}]
    with (
        build(made, name="named1", home=home) as one,
        build(made, name="named3", home=home, partitions=3, workers=1) as three,
    ):
        for options in every:
            expected, found = (
                scores(each, "d4", ranker="bm25", **options) for each in (one, three)
            )
            assert found == expected
            assert len(found) >= 20


def test_the_first_document_of_a_partition_is_named_by_its_id(home):
    made = [{"id": f"pum*{number}", "text": "pump pumpkin soup"} for number in range(12)]
    with build(made, name="first", home=home, partitions=2, workers=1) as index:
        for part in index.partitions:
            (first,) = part.ids([0])
            results = index.search(first, prefix="last")
            assert (results[0].id, results.interpretation.id) == (first, first)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [None, "last"])
def test_a_number_that_ends_ids_of_several_partitions_names_none(home, prefix):
    """One partition has a single such ID, and the others must not take it for the only one."""
    there = [[id_ for n in range(9) if partition_of(id_ := f"x{n}-12", 2) == at] for at in (0, 1)]
    made = [{"id": id_, "text": "soup"} for id_ in (there[0][0], *there[1][:2])]
    made += [{"id": f"d{n}x", "text": f"station {1200 + n % 3} valve"} for n in range(30)]
    with (
        build(made, name=f"ending1{prefix}", home=home) as one,
        build(made, name=f"ending2{prefix}", home=home, partitions=2, workers=1) as two,
    ):
        assert two.search("12", prefix=prefix).interpretation.id is None
        expected, found = (scores(each, "12", prefix=prefix, ranker="bm25") for each in (one, two))
        assert found == expected
        assert len(found) == (30 if prefix else 0)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_number_before_a_sign_names_the_only_id(home, partitions):
    ids = [
        "E-1043/2",
        "E-1044/2",
        "E-1044/3",
        "x-2024",
        "2024/b",
        "p-12.500/a",
        "p-700.5",
        "5551/7",
    ]
    ids += ["E-10431/1", "IMG_6001.jpg", "a-801-802", "b/802"]
    made = [{"id": id_, "text": "pump valve 9001"} for id_ in ids] + [{"id": "9001-x", "text": "a"}]
    expected = {"1043": "E-1043/2", "#1043": "E-1043/2", "2024": "x-2024", "6001": "IMG_6001.jpg"}
    expected |= {"801": "a-801-802", "10431": "E-10431/1"}
    others = ["1044", "500", "700", "5551", "802", "9001", "104", "043", "43", "1045"]
    name = f"signs{partitions}"
    with build(made, name=name, home=home, partitions=partitions, workers=1) as index:
        for query in (*expected, *others):
            assert index.search(query).interpretation.id == expected.get(query), query


@pytest.mark.parametrize("partitions", [1, 3])
def test_letters_and_digits_name_the_only_id_whatever_its_signs(home, partitions):
    ids = ["E-1043/2", "E-1044/2", "E-1044/3", "SUP/1058", "SUP:1059", "SUP+1060", "A7-12"]
    ids += ["4711-A", "4712.B", "x-700.5", "path/T-2000-9.txt", "2024/b-555", "F-77/1", "W-88/1"]
    made = [{"id": id_, "text": "valve of G-8000 and W-88"} for id_ in ids]
    made.append({"id": "G-8000/1", "text": "pump"})
    expected = dict.fromkeys(["E-1043", "e1043", "E 1043", "e_1043", "#e1043"], "E-1043/2")
    expected |= dict.fromkeys(["e1043/2", "E 1043 2", "E-1043-2", "E-1043/2"], "E-1043/2")
    expected |= dict.fromkeys(["sup 1058", "SUP-1058", "sup1058", "1058"], "SUP/1058")
    expected |= {"SUP-1059": "SUP:1059", "sup#1060": "SUP+1060", "sup1060": "SUP+1060"}
    expected |= {"a7 12": "A7-12", "4711a": "4711-A", "4712-b": "4712.B"}
    expected |= {"t2000": "path/T-2000-9.txt", "b555": "2024/b-555", "f77/1": "F-77/1"}
    # Several IDs, decimals, what documents contain, parts of runs, and too few digits.
    others = ["E-1044", "x-700", "G-8000", "g8000", "W-88", "E-104", "up1058", "1043/2", "F-77"]
    name = f"letters{partitions}"
    with build(made, name=name, home=home, partitions=partitions, workers=1) as index:
        for _ in range(2):  # with answers of all partitions, and without
            for query in (*expected, *others):
                results = index.search(query)
                assert results.interpretation.id == expected.get(query), query
                if query in expected:
                    assert results[0].id == expected[query]
        assert index.search("E-1043", filter="id != 'E-1043/2'").interpretation.id is None


@pytest.mark.parametrize("most", [10, 1_000])
@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_any_history_of_writes_leaves_bm25_as_it_is(tmp_path, count, most, monkeypatch):
    """Writes in random batches, replacements, deletions and deletions of what is not there.

    most  documents of the training: words that it lacks are in the files of the terms
    """
    monkeypatch.setattr("klsa_search.indexing.partitions.MOST", most)
    made = [
        {**document, "text": f"{document['text']} only{number} some{number % 20}"}
        for number, document in enumerate(topic_records(80))
    ]
    pair = [build(made, name=f"in{n}", home=tmp_path, partitions=n, workers=1) for n in (1, count)]
    rng, later = np.random.default_rng(count), topic_records(120, seed=3)
    for step in range(4):
        size = int(rng.integers(1, 20))
        puts = [later[place] for place in rng.choice(120, size, replace=False)]
        gone = [f"d{number}" for number in rng.choice(160, 5, replace=False)]
        words = " ".join(f"only{number} some{number % 30}" for number in rng.choice(90, 3))
        for index in pair:
            index.add({**put, "text": f"{put['text']} step{step} {words}"} for put in puts)
            index.delete(gone)
    later_words = [f"only{number} some{number % 30}" for number in range(0, 90, 13)]
    pair.append(open_index(tmp_path / f"in{count}"))
    for query in (*TOPIC_QUERIES, "step0 step3", "step2 word30", *later_words):
        expected, *others = (scores(index, query, ranker="bm25", spelling="off") for index in pair)
        assert [by_id(found) for found in others] == [by_id(expected)] * 2
    for partition in (partition for index in pair for partition in index.partitions):
        assert frequencies(partition) == frequencies(pair[0].partitions[0])
    for index in pair:
        index.close()


def frequencies(partition):
    """Return the document frequency and the occurrences of each term, in all partitions."""
    snapshot = partition.state().snapshot
    kernel, vocabulary = snapshot.query_kernel, snapshot.vocabulary
    # Compiled code reads these by the numbers of terms that only other partitions contain.
    assert len(kernel.postings.best) == len(kernel.counts.frequencies) == len(vocabulary)
    counts = zip(
        kernel.counts.frequencies.tolist(), kernel.counts.occurrences.tolist(), strict=True
    )
    found = {term: each for term, each in zip(vocabulary.terms, counts, strict=True) if each[0]}
    assert {vocabulary.terms[number] for number in vocabulary.numbers.values()} == found.keys()
    assert vocabulary.numbers.keys() == found.keys()
    return found


def test_opening_and_writing_read_no_terms_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr("klsa_search.indexing.partitions.MOST", 10)
    made = [{"id": f"d{number}", "text": f"same only{number}"} for number in range(60)]
    build(made, name="parts", home=tmp_path, partitions=3, workers=1).close()

    def refuse(_):
        raise AssertionError("all terms are read")

    monkeypatch.setattr(SortedTexts, "__iter__", refuse)
    with open_index(tmp_path / "parts") as index:
        index.add([{"id": "new", "text": "same other"}])
        index.delete(["d3", "d4"])
        for number in (7, 8, 9):
            hits = index.search(f"only{number}", spelling="off").hits
            assert [hit.id for hit in hits][:1] == [f"d{number}"]


def test_words_that_a_build_without_any_gets_later_are_found(tmp_path):
    made = [{"id": f"d{number}", "title": "", "text": ""} for number in range(20)]
    with build(made, name="empty", home=tmp_path, partitions=2, workers=1) as index:
        index.add([{"id": f"new{number}", "text": f"zebra word{number}"} for number in range(5)])
        assert len(index.search("zebra").hits) == 5
        assert [hit.id for hit in index.search("word3", spelling="off").hits] == ["new3"]


def test_a_partition_that_was_built_on_its_own_is_refused(tmp_path, monkeypatch):
    """Its terms have other numbers."""
    monkeypatch.setattr("klsa_search.indexing.partitions.MOST", 10)
    path = tmp_path / "parts"
    build(topic_records(80), name="parts", home=tmp_path, partitions=2, workers=1).close()
    with open_index(path / "000001-1") as part:
        part.add([{"id": "other", "text": "zebra"}])
    refit(path / "000001-1").close()
    with pytest.raises(IndexDamaged, match=r"000001-1/000002.*klsa-index repair parts "):
        open_index(path)
    repair(path).index.close()
    with open_index(path) as index:
        assert len(index) == 81


def test_an_index_in_partitions_is_listed_deleted_and_not_replaced_by_one_without(home, one, three):
    from klsa_search import list_indexes
    from klsa_search.storage.maintenance import delete_index

    with open_index(home / "three") as index:
        assert len(index.partitions) == 3
    build(topic_records(30), name="short", home=home, partitions=2, workers=1).close()
    assert "short" in list_indexes(home)
    with pytest.raises(StoreError, match="has partitions"):
        build(topic_records(30), name="short", home=home)
    with pytest.raises(StoreError, match="has one partition"):
        build(topic_records(300), name=one.name, home=home, partitions=2, workers=1)
    with build(topic_records(40), name="short", home=home, partitions=2, workers=1) as index:
        assert len(index) == 40
        assert index.generation == "000002"
    assert delete_index(home / "short") == []
    assert "short" not in list_indexes(home)


def test_a_partition_without_documents_has_the_fields_of_all(home):
    records = [{"id": str(n), "text": "word01", "kind": "aab"[n]} for n in range(3)]
    with build(records, name="few", home=home, partitions=4, workers=1) as index:
        assert not all(len(partition) for partition in index.partitions)
        assert index.search("word01", filter="kind = a", k=20).total == 2
        assert index.search("word01", facets=["kind"]).facets["kind"].values == (("a", 2), ("b", 1))
        assert index.search("word01", distinct="kind", sort=["kind"]).total == 2


@pytest.mark.parametrize("blank", [None, "", " ", [], float("nan")])
def test_a_field_that_is_blank_in_a_partition_has_the_type_of_all(blank, home):
    there = [[id_ for n in range(12) if partition_of(id_ := f"d{n}", 2) == at] for at in (0, 1)]
    made = [
        {"id": id_, "text": "word01", "price": blank if at == 0 else 5.5, "about": ["a", blank][at]}
        for at in (0, 1)
        for id_ in there[at]
    ]
    options = {"home": home, "workers": 1, "replace": True}
    with (
        build(made, name="blank1", **options) as one,
        build(made, name="blank2", partitions=2, **options) as two,
    ):
        for written in (False, True):
            if written:
                later = [
                    {"id": ids[0], "text": "word01", "price": 9, "about": "b"} for ids in there
                ]
                for index in (one, two):
                    index.add(later)
            assert {name: field.type for name, field in two.fields.items()} == {
                "price": "number",
                "about": "keyword",
            }
            for filter_ in ("price >= 7", "about = b", "price < 6"):
                expected, found = (
                    index.search("word01", filter=filter_, facets=["price", "about"])
                    for index in (one, two)
                )
                assert (found.total, found.facets) == (expected.total, expected.facets)


def test_only_fields_of_the_build_are_filterable(home):
    """A later field could have another type in each partition."""
    with build(topic_records(40), name="fields", home=home, partitions=2, workers=1) as index:
        index.add([{"id": str(n), "text": "word01", "extra": n} for n in range(9)])
        assert index.search("word01", filter="year > 2001").total
        with pytest.raises(QueryError, match=r"'extra' is not filterable.*--field NAME:TYPE"):
            index.search("word01", filter="extra = 5")
    options = {"fields": ("extra:number",), "partitions": 2, "workers": 1}
    with build(topic_records(40), name="declared", home=home, **options) as index:
        index.add([{"id": str(n), "text": "word01", "extra": n} for n in range(9)])
        assert [hit.id for hit in index.search("word01", filter="extra = 5").hits] == ["5"]


def test_a_build_that_needs_too_much_memory_is_refused_before_it_starts(home):
    file = home / "documents.jsonl"
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in rng.integers(500, size=60_000)]
    texts = (" ".join(words[begin : begin + 4000]) for begin in range(0, len(words), 4000))
    lines = (json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts))
    file.write_text("\n".join(lines))
    with pytest.raises(SettingsError, match="is not enough"):
        build(file, name="large", home=home, partitions=2, memory="1MiB", workers=1)
    assert not (home / "large").exists()


def test_a_ranker_that_needs_all_documents_is_refused(three):
    with pytest.raises(QueryError, match="lsi"):
        three.search("word01", ranker="lsi")


@pytest.mark.parametrize("ranker", ["bm25", "klsa"])
def test_rank_returns_doc_ids_of_all_partitions(one, three, ranker):
    for query in TOPIC_QUERIES:
        doc_ids, values = three.rank(query, 40, ranker=ranker)
        hits = three.search(query, 40, ranker=ranker, spelling="off").hits
        assert values.tolist() == [hit.score for hit in hits]
        assert three.ids(doc_ids) == [hit.id for hit in hits]
        by_doc_id = three.hits(doc_ids, values, set(query.split()))
        assert [(hit.rank, hit.id, hit.score) for hit in by_doc_id] == [
            (hit.rank, hit.id, hit.score) for hit in hits
        ]
        assert three.doc_ids(three.ids(doc_ids)) == doc_ids.tolist()
        assert [each.id for each in three.documents_at(doc_ids)] == three.ids(doc_ids)
    expected = [values.tolist() for _, values in one.rank_many(TOPIC_QUERIES, 9, ranker="bm25")]
    found = three.rank_many(TOPIC_QUERIES, 9, threads=2, ranker="bm25")
    assert [values.tolist() for _, values in found] == expected
    assert three.ids(three.live_doc_ids()) == three.ids()


def test_runs_are_ranked_by_id(one, three):
    from klsa_search.collection.model import Topic
    from klsa_search.evaluation.measures import rank_best

    queries = [Topic(id=str(number), text=text) for number, text in enumerate(TOPIC_QUERIES)]
    whole = list(rank_best(one, queries, ranker="bm25"))
    for one_run, run in zip(whole, rank_best(three, queries, ranker="bm25"), strict=True):
        assert run.scores.tolist() == one_run.scores.tolist()
        assert sorted(run.document_ids) == sorted(one_run.document_ids)


@pytest.mark.parametrize("distinct", [False, True])
def test_pages_do_not_overlap_if_later_documents_score_higher(distinct):
    """Deeper rankings rescore more candidates, so those of later pages may."""
    rng = np.random.default_rng(5)
    lists = [rng.random(40).astype(np.float32) for _ in range(3)]
    values = [[(n % 5 == 0, n) for n in rng.integers(20, size=40).tolist()] for _ in lists]

    def first(count):
        pages = [
            PartPage(
                doc_ids=np.arange(count),
                scores=own[:count],
                ordinals=np.arange(count),
                keys=[()] * count,
                has_id_match=False,
                distinct=kept[:count] if distinct else [],
                total=40,
                facets={},
            )
            for own, kept in zip(lists, values, strict=True)
        ]
        order = merged_order(pages, (), 4, 3 * count)
        assert len(order) == 3 * count or distinct
        return order[:count]

    for count in range(4, 36, 4):
        page = first(count)
        assert first(count + 4)[:count] == page
        assert len(set(page)) == len(page)


@pytest.mark.parametrize("sort", [[], ["year:desc"]])
@pytest.mark.parametrize("field", ["kind", "year"])
def test_values_are_distinct_over_partitions(one, three, field, sort):
    options = {"distinct": field, "ranker": "bm25", "sort": sort}
    for offset in (0, 3):
        theirs = one.search("word01 word13", 5, offset=offset, **options)
        ours = three.search("word01 word13", 5, offset=offset, **options)
        assert ours.total == theirs.total
        assert ours.facets == {}
        assert [hit.id for hit in ours.hits] == [hit.id for hit in theirs.hits]
    with pytest.raises(QueryError, match="distinct: "):
        three.search("word01", distinct="nothing")


def test_pinned_documents_take_their_distinct_values_in_all_partitions(tmp_path):
    first, second, third, fourth = (
        [f"d{n}" for n in range(60) if partition_of(f"d{n}", 4) == number] for number in range(4)
    )
    pins = first[:3]
    texts = {id_: ("engine word", tag) for id_, tag in zip(pins, "abc", strict=True)}
    texts |= {second[n]: ("engine " * (9 - n), tag) for n, tag in enumerate("abcdefg")}
    texts |= {third[0]: ("engine " + "filler " * 20, "d"), fourth[0]: ("filler", "h")}
    records = [
        {"id": id_, "text": text, "metadata": {"tag": tag}} for id_, (text, tag) in texts.items()
    ]
    pin = [{"id": id_, "position": 50 + n} for n, id_ in enumerate(pins)]
    rule = {"id": "pins", "when": {"query_is": "engine"}, "then": {"pin": pin}}
    options = {"distinct": "tag", "ranker": "bm25"}
    expected = [*second[3:7], *pins]
    for partitions in (1, 4):
        name = f"pins{partitions}"
        with build(records, name=name, home=tmp_path, partitions=partitions, workers=1) as index:
            index.set_rules([rule])
            pages = [index.search("engine", 2, offset=n, **options).hits for n in range(0, 8, 2)]
            assert [hit.id for page in pages for hit in page] == expected
            hits = index.search("engine", 9, **options).hits
            assert [hit.id for hit in hits] == expected


def test_exact_scores_are_those_of_all_documents(one, three):
    sizes = [part.max_doc for part in three.partitions]
    for query in TOPIC_QUERIES:
        expected = dict(zip(one.ids(), one.scores(query, exact=True).tolist(), strict=True))
        by_doc_id = three.scores(query)
        places = positions_of(np.array(three.doc_ids([*expected])), sizes)
        found = dict(zip(expected, by_doc_id[places].tolist(), strict=True))
        assert np.corrcoef([*expected.values()], [*found.values()])[0, 1] > 0.999
        exact = three.search(query, 300, exact=True)
        assert exact.total == np.count_nonzero(by_doc_id)
        assert all(hit.score == found[hit.id] for hit in exact.hits)
        for hit in three.search(query, 30, exact=True, explain=True).hits:
            assert hit.score == found[hit.id]
            assert hit.explanation is not None
            assert total(hit.explanation) == pytest.approx(hit.score, rel=1e-3, abs=1e-6)
        bm25 = three.scores(query, ranker="bm25")[places]
        assert bm25.tolist() == one.scores(query, ranker="bm25").tolist()
