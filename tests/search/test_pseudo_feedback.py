"""Pseudo-relevance feedback: worked example, definition, and where it equals BM25."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from klsa_search import build
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.rankers.feedback import DOCUMENTS, RM3, ROCCHIO, TERMS, add_terms
from tests.support.worlds import TOPIC_QUERIES, random_documents, topic_records

PLAIN = {"language": "none"}
METHODS = {"rm3": RM3, "rocchio": ROCCHIO}
every_method = pytest.mark.parametrize("ranker", METHODS)


def asking(**counts):
    """A query over the terms a, b, c, d, numbered from 0."""
    numbers = ["abcd".index(term) for term in counts]
    return QueryTerms(np.array(numbers), np.array(list(counts.values()), dtype=np.float32))


def rows(*documents):
    return sparse.csr_array(np.array(documents, dtype=np.float32))


def weights(query):
    return dict(zip(query.numbers.tolist(), query.counts.tolist(), strict=True))


def test_rm3_by_hand():
    # P(t|d): 2/3 1/3 0 and 1/4 0 3/4. Times the scores: 9/4 1 3/4, which sum to 4.
    # Half the query and half the model, times two for the query to count as before.
    found = add_terms(asking(a=1), rows([2, 1, 0, 0], [1, 0, 3, 0]), np.array([3.0, 1.0]), RM3)
    assert weights(found) == pytest.approx({0: 1 + 9 / 16, 1: 1 / 4, 2: 3 / 16})


def test_rm3_gives_a_longer_query_a_larger_model():
    found = add_terms(asking(a=1, d=3), rows([2, 1, 0, 1]), np.array([7.0]), RM3)
    assert weights(found) == pytest.approx({0: 1 + 2, 1: 1, 3: 3 + 1})


def test_rocchio_by_hand():
    # Unit vectors: 3/5 4/5 0 and 4/5 0 3/5, whatever the scores; their sum is 7/5 4/5 3/5.
    found = add_terms(asking(a=1), rows([3, 4, 0, 0], [4, 0, 3, 0]), np.array([9.0, 1.0]), ROCCHIO)
    length = np.sqrt(49 + 16 + 9) / 5
    expected = {0: 1 + 0.75 * 1.4 / length, 1: 0.75 * 0.8 / length, 2: 0.75 * 0.6 / length}
    assert weights(found) == pytest.approx(expected)


@every_method
def test_among_equal_terms_the_first_stay(ranker):
    counts = rows(np.ones(TERMS + 5))
    query = QueryTerms(np.array([TERMS + 2]), np.ones(1, dtype=np.float32))
    found = add_terms(query, counts, np.array([2.0]), METHODS[ranker])
    assert found.numbers.tolist() == [*range(TERMS), TERMS + 2]
    assert len(set(found.counts.tolist()[:TERMS])) == 1


@pytest.fixture(scope="module")
def index(index_of):
    records = [{"id": str(i), "text": text} for i, text in enumerate(random_documents(80, 60))]
    return index_of(records, **PLAIN)


def by_definition(index, query, method):
    """The module's formula, written out over dense vectors and one-word queries."""
    terms = (index.path / "vocabulary.txt").read_text().split()
    counts = np.array(
        [[index.document(name).text.split().count(term) for term in terms] for name in index.ids()]
    )
    alone = np.array([index.scores(term, ranker="bm25") for term in terms])
    q = np.array([query.split().count(term) for term in terms])
    row = q @ alone
    best = [d for d in np.argsort(-row, kind="stable")[:DOCUMENTS] if row[d] > 0]
    m = sum(
        (row[d] if method.by_score else 1) * counts[d] / np.linalg.norm(counts[d], method.norm)
        for d in best
    )
    m[np.argsort(-m, kind="stable")[TERMS:]] = 0
    joined = method.original * q / np.linalg.norm(q, method.norm)
    joined += method.model * m / np.linalg.norm(m, method.norm)
    return joined @ alone * np.linalg.norm(q, method.norm) / method.original


@every_method
@pytest.mark.parametrize("query", ["t00", "t25 t25 t07"])
def test_scores_follow_the_definition(index, ranker, query):
    expected = by_definition(index, query, METHODS[ranker])
    steps = (TERMS + 4) * index.arrays.query_kernel.postings.step  # a term may be rounded by one
    assert index.scores(query, ranker=ranker) == pytest.approx(expected, rel=1e-4, abs=steps)


@every_method
def test_a_model_of_weight_0_is_bm25_to_the_bit(index, ranker):
    snapshot = index.arrays
    query = QueryTerms.of(snapshot.vocabulary.numbers[term] for term in ("t03", "t11", "t11"))
    row = snapshot.query_kernel.query_row(query.numbers, query.counts)
    best = np.argsort(-row, kind="stable")[:DOCUMENTS]
    method = replace(METHODS[ranker], original=1.0, model=0.0)
    same = add_terms(query, snapshot.counts_of(best), row[best], method)
    assert len(same.numbers) > len(query.numbers)
    assert np.array_equal(snapshot.query_kernel.query_row(same.numbers, same.counts), row)


@every_method
def test_the_same_query_gives_the_same_bits(index, ranker):
    one, other = (index.scores("t03 t11 t25", ranker=ranker) for _ in range(2))
    assert np.array_equal(one, other)


@every_method
def test_documents_without_the_word_are_found_through_those_with_it(ranker, tmp_path):
    texts = ["yeast dough", "dough oven", "wing flow"]
    records = [{"id": text, "text": text} for text in texts]
    index = build(records, name="bread", home=tmp_path, **PLAIN)
    assert [hit.id for hit in index.search("yeast", ranker="bm25")] == texts[:1]
    results = index.search("yeast", ranker=ranker)
    assert [hit.id for hit in results] == texts[:2]
    assert results.parameters == {"boosts": ""}
    index.close()


def test_several_partitions_expand_queries_by_the_documents_of_all(tmp_path):
    made = topic_records(150)
    pair = [
        build(made, name="one", home=tmp_path),
        build(made, name="parts", home=tmp_path, partitions=4, workers=1),
    ]
    for ranker in METHODS:
        for query in TOPIC_QUERIES:
            one, parts = (index.search(query, 200, ranker=ranker) for index in pair)
            assert [(hit.id, hit.score) for hit in parts] == [(hit.id, hit.score) for hit in one]
    for index in pair:
        index.add(topic_records(20, 1, 300))
        index.delete(["d4", "d301"])
    for ranker in METHODS:
        for query in TOPIC_QUERIES:
            one, parts = (
                {hit.id: hit.score for hit in index.search(query, 200, ranker=ranker).hits}
                for index in pair
            )
            # Equal documents, and terms with equal shares, may be chosen in another order.
            first = sorted(one, key=one.__getitem__)[-10:]
            assert len(parts.keys() & set(first)) >= 9
            assert [parts.get(id_, 0) for id_ in first] == pytest.approx(
                [one[id_] for id_ in first], rel=0.05
            )
