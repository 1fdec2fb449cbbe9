"""Vectors of documents: stored in every way in, and one more part of scores."""

import json

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.collection import Document
from klsa_search.collection.vectors import quantised, vectors_of
from klsa_search.errors import BadDocument, CollectionError, QueryError
from klsa_search.indexing.rewrite import refit
from klsa_search.kernels import vector_space
from klsa_search.search.ranking.vector_ranking import NEAREST
from klsa_search.storage.maintenance import copy_index

DIMENSION = 12
WORDS = ("oil", "engine", "brake", "wheel", "road", "rain", "coolant", "pump")


def vector(seed):
    return np.random.default_rng(seed).normal(size=DIMENSION).tolist()


def record(number, **changes):
    words = [WORDS[number % 8], WORDS[number * 3 % 7], f"item{number}"]
    return {
        "id": f"d{number}",
        "text": " ".join(words),
        "year": 2000 + number % 5,
        "_vectors": {"m": vector(number)},
    } | changes


@pytest.fixture(
    scope="module",
    params=[1, pytest.param(3, marks=pytest.mark.slow)],
    ids=["one part", "three partitions"],
)
def parts(request):
    """Return the options of a build with so many parts."""
    return {} if request.param == 1 else {"partitions": request.param, "workers": 1}


@pytest.fixture(scope="module")
def index(tmp_path_factory, parts):
    home = tmp_path_factory.mktemp("built")
    return build([record(n) for n in range(300)], name="a", home=home, **parts)


@pytest.fixture
def copied(tmp_path, index):
    """Return a copy of the index that may be changed."""
    copy_index(index.path.parent, tmp_path / "a")
    return open_index(tmp_path / "a")


UNFIT = [
    ({"m": [0.0] * DIMENSION}, "only zeros"),
    ({"m": [1.0, float("nan")]}, "NaN"),
    ({"m": [1, 10**400]}, "number beyond"),
    ({"m": "text"}, "not a list of numbers"),
    ({"m": [[1.0], [1.0, 2.0]]}, "not a list of numbers"),
    ({"m": ["no base64!"]}, "base64"),
    ({"": [1.0]}, "space ''"),
    ([1.0, 2.0], "not a mapping"),
    ({"m": [1.0] * 3}, "has 3 values, and the space `m` has 12"),
]
UNFIT_QUERIES = [
    ({"n": [1.0]}, "the spaces are: `m`"),
    ({"m": [1.0, 2.0]}, "the space has 12"),
    ({"m": [0.0] * DIMENSION}, "only zeros"),
    ([1.0], "give one vector"),
]


def test_quantising_keeps_directions_and_is_idempotent():
    rows = np.random.default_rng(0).normal(size=(50, 384))
    stored = quantised(rows)
    lengths = np.linalg.norm(stored.astype(float), axis=1) * np.linalg.norm(rows, axis=1)
    assert ((stored * rows).sum(axis=1) / lengths).min() > 0.9995
    np.testing.assert_array_equal(quantised(stored), stored)
    np.testing.assert_array_equal(quantised(rows * 1e-30), stored)


def test_invalid_vectors_are_refused_with_the_id(index):
    before = len(index)
    for given, fact in UNFIT:
        with pytest.raises(CollectionError, match="bad") as refused:
            index.add([{"id": "bad", "text": "oil", "_vectors": given}])
        assert fact in str(refused.value)
        with pytest.raises(BadDocument, match="bad"):
            index.write([Document(id="bad", text="oil", metadata={"_vectors": given})])
    assert len(index) == before


def test_a_build_refuses_another_dimension(tmp_path):
    with pytest.raises(CollectionError, match=r"'d1'.*has 2 values, and the space `m` has 12"):
        build([record(0), record(1, _vectors={"m": [1, 2]})], name="a", home=tmp_path)


def test_cosines_are_those_of_numpy(tmp_path, instruction_set):
    index = build([record(n) for n in range(300)], name="a", home=tmp_path)
    index.add([record(300), record(301, _vectors=None)])
    space, query = index.arrays.vectors["m"], quantised(vector(9))[0]
    found = space.cosines(query, index.max_doc)
    by_numpy = np.full(index.max_doc, vector_space.ABSENT)
    for part in space.parts:
        products = vector_space.dot_products(part.rows, query[None])[:, 0]
        scales = part.scales * vector_space.scales_of(query[None])[0]
        np.maximum.at(by_numpy, part.documents, products * scales)
    np.testing.assert_array_equal(found, by_numpy)
    expected = np.array(vector(5)) @ np.array(vector(9))
    expected /= np.linalg.norm(vector(5)) * np.linalg.norm(vector(9))
    assert found[5] == pytest.approx(expected, abs=0.02)
    assert found[-1] == vector_space.ABSENT


def test_the_nearest_document_is_found_without_its_words(index):
    results = index.search("submarine", vector={"m": vector(77)})
    assert results.hits[0].id == "d77"
    assert results.total == NEAREST
    assert index.search("", vector={"m": vector(77)}).hits[0].id == "d77"
    assert "_vectors" not in results.hits[0].metadata


def test_without_a_vector_nothing_changes(tmp_path, index, parts):
    plain = [{k: v for k, v in record(n).items() if k != "_vectors"} for n in range(300)]
    other = build(plain, name="b", home=tmp_path, **parts)
    for query in ("oil engine", "rain road pump", "item7"):
        assert [(h.id, h.score, h.metadata) for h in index.search(query, k=50)] == [
            (h.id, h.score, h.metadata) for h in other.search(query, k=50)
        ]


def test_the_part_of_a_vector_is_added_and_explained(index):
    given = {"m": vector(3)}
    results = index.search("oil rain", k=400, vector=given, explain=True)
    by_words = {hit.id: hit.score for hit in index.search("oil rain", k=400)}
    assert len(results) == results.total > len(by_words)
    explained = results[0].explanation
    assert explained.score == pytest.approx(by_words[results[0].id] + explained.vector.value)
    for hit in results:
        explanation = hit.explanation
        if hit.id not in by_words:
            assert hit.score == pytest.approx(explanation.vector.value)
        assert explanation.score == pytest.approx(hit.score)
    single = index.explain("oil rain", results[0].id, vector=given)
    assert single.vector == explained.vector


def test_a_filter_and_pages_change_no_score(index):
    given = {"m": vector(3)}
    scores = {hit.id: hit.score for hit in index.search("oil", k=400, vector=given)}
    for year in range(2000, 2005):
        found = index.search("oil", k=300, vector=given, filter=f"year = {year}", facets=["year"])
        assert found.total == len(found)
        assert all(scores.get(hit.id, hit.score) == hit.score for hit in found)
    pages = [index.search("oil", k=10, offset=n, vector=given).hits for n in (0, 10, 20)]
    whole = index.search("oil", k=10, offset=0, vector=given)
    assert len({hit.id for page in pages for hit in page}) == 30
    assert pages[0] == whole.hits
    least = pages[0][4].score
    assert [h.id for h in index.search("oil", vector=given, min_score=least)] == [
        h.id for h in whole.hits[:5]
    ]


@pytest.mark.parametrize("option", [{"filter": "year = 3"}, {"group": "passage"}, {"offset": 2}])
def test_rankings_by_vectors_refuse_options_of_searches(index, option):
    with pytest.raises(QueryError, match="unknown parameter"):
        index.rank("oil", vector={"m": [1.0] * DIMENSION}, **option)


def test_the_best_of_any_k_are_the_best_of_all(index):
    given = {"m": vector(3)}
    ids, scores = index.rank("oil wheel", 400, vector=given)
    for k in (1, 3, 10, 50):
        found, best = index.rank("oil wheel", k, vector=given)
        np.testing.assert_array_equal(found, ids[:k])
        np.testing.assert_array_equal(best, scores[:k])


def test_deleted_documents_count_nowhere(tmp_path, copied):
    gone = [f"d{n}" for n in range(100, 200)]
    copied.delete(gone)
    given = {"m": vector(150)}
    assert not {hit.id for hit in copied.search("oil", k=400, vector=given)} & set(gone)
    before = [(hit.id, hit.score) for hit in copied.search("submarine", vector=given)]
    after = refit(tmp_path / "a").search("submarine", vector=given)
    assert [(hit.id, hit.score) for hit in after] == before


def test_vectors_stay_with_their_documents(tmp_path, copied):
    copied.add([record(500, _vectors={"m": vector(500), "other": [1.0, 2.0]}), record(7)])
    copied.patch("d8", {"year": 1999})
    copied.patch("d9", {"text": "another text"})
    copied.patch("d10", {"_vectors": {"m": vector(600)}})
    for found in (copied, open_index(tmp_path / "a"), refit(tmp_path / "a")):
        for id_, seed in (("d500", 500), ("d7", 7), ("d8", 8), ("d10", 600)):
            stored = vectors_of(found.document(id_))["m"]
            np.testing.assert_array_equal(stored, quantised(vector(seed)))
        assert not vectors_of(found.document("d9"))
        assert found.search("", vector={"other": [1.0, 2.0]}).hits[0].id == "d500"


def test_a_sync_keeps_vectors_that_the_source_does_not_give(copied):
    plain = [{k: v for k, v in record(n).items() if k != "_vectors"} for n in range(300)]
    assert copied.sync(plain).unchanged == 300
    changed = copied.sync([record(0, _vectors={"m": vector(900)}), *plain[1:]])
    assert changed.changed == ("d0",)
    assert changed.removed_fields == ()


def test_stored_vectors_can_be_given_again(tmp_path, index):
    written = json.loads(json.dumps(dict(index.document("d5").metadata)))
    copy = build([{"id": "d5", "text": "oil", **written}], name="b", home=tmp_path)
    np.testing.assert_array_equal(
        vectors_of(copy.document("d5"))["m"], vectors_of(index.document("d5"))["m"]
    )


def test_the_best_of_several_vectors_counts(tmp_path):
    several = {"m": [vector(1), vector(2)]}
    index = build([record(0), record(1, _vectors=several), record(2)], name="a", home=tmp_path)
    hit = index.search("", vector={"m": vector(1)}, explain=True).hits[0]
    assert hit.id == "d1"
    assert hit.explanation.vector.cosine == pytest.approx(1, abs=1e-3)


def test_invalid_vectors_of_queries_are_refused(index):
    for given, fact in UNFIT_QUERIES:
        with pytest.raises(QueryError, match=fact):
            index.search("oil", vector=given)  # type: ignore[arg-type]


def test_restricted_searches_see_no_hidden_vector(tmp_path, index, parts):
    visible = [record(n) for n in range(300) if n % 5 == 3]
    hidden = [record(n, _vectors={"m": vector(n + 7000)}) for n in range(300) if n % 5 != 3]
    other = build(
        sorted(visible + hidden, key=lambda r: int(str(r["id"])[1:])), name="b", home=tmp_path,
        **parts,
    )  # fmt: skip
    answers = [
        [
            (hit.id, hit.score)
            for hit in each.restricted("year = 2003").search("oil", vector={"m": vector(3)})
        ]
        for each in (index, other)
    ]
    assert answers[0] == answers[1]


def test_passages_have_their_own_vectors(tmp_path):
    text = "\n\n".join(f"# Part {n}\n\n" + f"word{n} text of this part. " * 30 for n in range(4))
    documents = [
        {"id": "long", "text": text, "_vectors": {"m": [vector(n) for n in range(4)]}},
        {"id": "short", "text": "word2 only", "_vectors": {"m": vector(50)}},
    ]
    index = build(documents, name="a", home=tmp_path, passages="200")
    assert index.passage_count == 5
    for number in range(4):
        hits = index.search("", group="passage", vector={"m": vector(number)}).hits
        assert f"word{number} " in str(hits[0].text)
        assert index.search("", vector={"m": vector(number)}).hits[0].id == "long"
    index.add([documents[0] | {"id": "later"}])
    hits = index.search("", group="passage", vector={"m": vector(3)}).hits
    assert [hit.document_id for hit in hits[:2]] == ["long", "later"]


def test_scores_by_vectors_are_those_of_one_part_to_the_bit(tmp_path):
    """Also after writes, in spaces that documents of one partition have, and in views."""
    made = [record(n) for n in range(300)]
    pair = [
        build(made, name="one", home=tmp_path),
        build(made, name="parts", home=tmp_path, partitions=4, workers=1),
    ]
    for each in pair:
        each.add([record(n, _vectors={"m": vector(n)}) for n in range(280, 340)])
        each.add([record(400, _vectors={"few": [1.0, 2.0], "m": vector(5)})])
        each.delete([f"d{n}" for n in range(0, 90, 7)])
    views = [each.restricted("year = 2003") for each in pair]
    for one, parts in (pair, views):
        for query in ("oil rain", "item12 brake", ""):
            for given in ({"m": vector(3)}, {"m": vector(310)}, {"few": [1.0, 0.0]}):
                if one is views[0] and "few" in given:
                    continue
                for options in ({}, {"filter": "year > 2001", "facets": ["year"]}):
                    answers = [
                        each.search(query, 500, vector=given, ranker="bm25", **options)
                        for each in (one, parts)
                    ]
                    expected, found = (
                        (sorted((-hit.score, hit.id) for hit in a), a.total, a.facets)
                        for a in answers
                    )
                    assert found == expected, (query, given, options)
    with pytest.raises(QueryError, match="the spaces are: `m`"):
        views[1].search("oil", vector={"few": [1.0, 0.0]})
