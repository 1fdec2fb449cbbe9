"""Rankers of the template, against the formulas written out, also after writes."""

import math
from collections import Counter

import numpy as np
import pytest

from klsa_search import build
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.rankers.reader import IndexReader
from tests.support.worlds import random_documents

K1, B, MU = 1.2, 0.75, 1000.0
QUERIES = ["t03 t11", "t00", "t25 t25 t07", "t39 t38 t37 t36 nothing"]


def bm25l(f, dl, mean, n, N, **_):
    lifted = f / (1 - B + B * dl / mean) + 0.5
    return math.log((N + 1) / (n + 0.5)) * (K1 + 1) * lifted / (K1 + lifted)


def bm25_plus(f, dl, mean, n, N, **_):
    saturated = (K1 + 1) * f / (K1 * (1 - B + B * dl / mean) + f)
    return math.log((N + 1) / n) * (saturated + 1)


def lm_dirichlet(f, dl, c, T, **_):
    return max(math.log(1 + f / (MU * c / T)) + math.log(MU / (dl + MU)), 2**-16)


FORMULAS = {"bm25l": bm25l, "bm25-plus": bm25_plus, "lm-dirichlet": lm_dirichlet}


def written_out(formula, query, texts):
    """Return the score of each text, None for a deleted one."""
    live = [text.split() for text in texts if text is not None]
    T, n, c = sum(map(len, live)), Counter(), Counter()
    for words in live:
        n.update(set(words))
        c.update(words)
    given = {"N": len(live), "T": T, "mean": T / len(live)}
    return [
        0.0 if text is None else sum(
            formula(f=text.split().count(t), dl=len(text.split()), n=n[t], c=c[t], **given)
            for t in query.split() if t in text.split()
        )
        for text in texts
    ]  # fmt: skip


def records(texts):
    return [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def texts():
    return random_documents(80, 40)


@pytest.fixture(scope="module")
def index(texts, index_of):
    return index_of(records(texts), language="none")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("ranker", FORMULAS)
def test_scores_are_the_formula(template, index, texts, ranker, query):
    expected = written_out(FORMULAS[ranker], query, texts)
    assert index.scores(query, ranker=ranker) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("ranker", FORMULAS)
def test_scores_after_writes_are_the_formula_of_the_live_documents(
    template, texts, ranker, tmp_path
):
    built, later = texts[:64], texts[64:]
    index = build(records(built), name="written", home=tmp_path, language="none")
    index.add([{"id": f"l{number}", "text": text} for number, text in enumerate(later)])
    index.delete(["d3", "l5"])
    kept = [*built, *later]
    kept[3] = kept[64 + 5] = None
    for query in QUERIES:
        expected = written_out(FORMULAS[ranker], query, kept)
        assert index.scores(query, ranker=ranker) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    index.close()


@pytest.mark.parametrize(("ranker", "method"), [("bm25l", "bm25l"), ("bm25-plus", "bm25+")])
def test_scores_are_those_of_bm25s(template, index, texts, ranker, method):
    """Of documents that contain the word; bm25s adds a constant for each that does not."""
    import bm25s

    retriever = bm25s.BM25(method=method, k1=K1, b=B, delta={"bm25l": 0.5, "bm25+": 1.0}[method])
    retriever.index([text.split() for text in texts], show_progress=False)
    for word in ("t03", "t11", "t25"):
        theirs = retriever.get_scores([word])
        matches = [word in text.split() for text in texts]
        ours = index.scores(word, ranker=ranker)
        assert ours[matches] == pytest.approx(theirs[matches], rel=1e-4)
        assert not ours[np.logical_not(matches)].any()


def test_words_of_a_field_count_by_its_weight(tmp_path):
    documents = [{"id": "a", "title": "wing", "text": "wing flow"}, {"id": "b", "text": "flow"}]
    index = build(documents, name="t", home=tmp_path, language="none", search="title^3,text")
    snapshot = index.arrays
    reader = IndexReader(snapshot, index.parameters())
    number = snapshot.vocabulary.numbers["wing"]
    doc_ids, counts = reader.postings(number)
    assert (doc_ids.tolist(), counts.tolist()) == ([0], [4])
    assert reader.doc_lengths.tolist() == [5, 1]
    assert (reader.num_docs, reader.max_doc, reader.max_terms) == (2, 2, 2)
    assert reader.average_length == 3.0
    assert reader.doc_freqs[number] == 1
    assert reader.total_term_freqs[number] == 4
    assert reader.counts(doc_ids).toarray()[0, number] == 4
    query = QueryTerms.of([number])
    assert np.array_equal(reader.bm25(query), index.scores("wing", ranker="bm25"))
    expanded = reader.expand(np.array([0]), np.ones(1, np.float32))
    assert expanded.shape == (2,)
    index.close()
