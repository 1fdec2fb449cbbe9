"""Common words: indexed, found, half weight, and no document features."""

import numpy as np
import pytest

from klsa_search.kernels.bm25 import idf_of
from klsa_search.mining.duplicates import duplicates
from klsa_search.search.rankers import RANKERS

RECORDS = [
    {"id": "hello", "text": "hello"},
    {"id": "again", "text": "Hello, hello!"},
    {
        "id": "wing",
        "title": "A problem of wings",
        "text": "The order of wing problems: a problem.",
    },
    {"id": "flow", "text": "flow over a wing: the problem, and help"},
    {"id": "heat", "text": "heat of the boundary layer and its flow"},
]
SPECTRAL = ("gvsm", "squashing")


@pytest.fixture(scope="module", params=SPECTRAL)
def index(request, index_of):
    return index_of(RECORDS, spectral=request.param)


def number(index, word):
    return index.arrays.vocabulary.numbers[index.analyzer.term(word)]


def test_common_words_and_documents_of_them_alone_are_found(index):
    assert [hit.id for hit in index.search("hello")] == ["again", "hello"]
    assert {hit.id for hit in index.search("problem", ranker="bm25")} == {"wing", "flow"}
    assert index.search("hello", ranker="bm25").total == 2


def test_common_words_weigh_half(index):
    kernel = index.arrays.query_kernel
    frequencies = kernel.postings.frequencies
    for word, share in (("problem", 0.5), ("hello", 0.5), ("wing", 1), ("flow", 1), ("heat", 1)):
        term = number(index, word)
        idf = idf_of(frequencies[term : term + 1], len(RECORDS))[0]
        assert kernel.term_weights([term])[0] == pytest.approx(
            share * idf * kernel.burstiness([term])[0]
        )
    # Titles count twice: problem is in one and, twice, in its text.
    occurrences = kernel.postings.occurrences
    assert [occurrences[number(index, word)] for word in ("problem", "wing")] == [5, 4]
    assert index.arrays.lengths.tolist() == [1, 2, 8, 5, 5]


def test_common_words_are_not_features(index):
    snapshot = index.arrays
    common = {snapshot.vocabulary.terms[term] for term in snapshot.common}
    assert common >= {"problem", "hello", "help", "order"}
    content = snapshot.content_counts_of(np.arange(len(index)))
    assert content.nnz == snapshot.counts_of(np.arange(len(index))).nnz - 8
    assert not np.asarray(snapshot.latent.terms[snapshot.common]).any()
    assert content.sum() / len(index) == pytest.approx(snapshot.average_content)


def test_a_document_of_them_alone_is_a_copy_of_none(index):
    assert duplicates(index) == ()


@pytest.mark.parametrize("ranker", [name for name, row in RANKERS.items() if row.feedback])
def test_feedback_adds_none_and_takes_them_as_they_are(index, ranker):
    row, fed = (index.scores("hello", ranker=name) for name in ("bm25", ranker))
    assert np.array_equal(row, fed)


GERMAN = [
    {"id": "haus", "text": "Die Häuser und das Haus, ein altes"},
    {"id": "fluss", "text": "Der Fluss und die Brücke"},
    {"id": "wolke", "text": "Wolken"},
    {"id": "und", "text": "und"},
]


@pytest.mark.parametrize(
    ("language", "records", "share"),
    [
        ("german", GERMAN, {"und": 0.5, "die": 0.5, "haus": 1, "brücke": 1}),
        # Two characters are a term; a longer word on the list is several, which others hold, too.
        ("chinese", [{"id": "a", "text": "我们的搜索一方面"}], {"我们": 0.5, "搜索": 1, "方面": 1}),
        # No list: every word is like any other.
        ("tamil", GERMAN, {"und": 1, "die": 1, "haus": 1}),
        ("none", GERMAN, {"und": 1, "die": 1, "haus": 1}),
    ],
)
def test_other_languages_leave_nothing_out_and_their_list_weighs_half(
    language, records, share, index_of
):
    halved = index_of(records, language=language)
    full = index_of(records, language=language, common_weight=1.0)
    for word, expected in share.items():
        half, whole = (index.scores(word, ranker="bm25") for index in (halved, full))
        assert whole.any()
        assert half == pytest.approx(expected * whole, rel=1e-3)
    for index in (halved, full):
        index.close()
