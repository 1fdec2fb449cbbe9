"""Queries of more words than the engine takes at once."""

import random
from collections import Counter

import numpy as np
import pytest

from klsa_search.search.engine.evidence import LOCAL
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.query import pieces
from klsa_search.search.query.corrections import Corrector
from klsa_search.search.query.parser import MAX_TERMS
from klsa_search.search.rankers.klsa import rank_klsa
from klsa_search.search.state.state import open_state

WORDS = [f"word{number:03}" for number in range(400)]


@pytest.fixture(scope="module")
def index(index_of):
    chance = random.Random(3)
    weights = [1 / (number + 3) for number in range(len(WORDS))]
    documents = [
        {"id": str(number), "text": " ".join(chance.choices(WORDS, weights, k=60))}
        for number in range(1500)
    ]
    return index_of(documents, dimensions=10)


def test_the_heaviest_words_of_a_long_query_count_and_the_others_are_reported(index):
    results = index.search(" ".join(WORDS))
    interpretation = results.interpretation
    assert len(interpretation.words) == MAX_TERMS
    assert sorted((*interpretation.words, *interpretation.left_out)) == WORDS
    snapshot = index.arrays
    kernel, numbers = snapshot.query_kernel, snapshot.vocabulary.numbers
    weights = kernel.weights(np.arange(len(kernel.counts.frequencies)))

    def weights_of(words):
        return [int(weights[numbers[word]]) for word in words]

    assert min(weights_of(interpretation.words)) >= max(weights_of(interpretation.left_out))
    again = index.search(" ".join(interpretation.words))
    assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in results]
    assert again.interpretation.left_out == ()


def test_operators_count_in_a_long_query(index):
    required, excluded = f"+{WORDS[0]}", f"-{WORDS[5]}"
    query = " ".join((required, excluded, *WORDS[6:]))
    results = index.search(query, operators=True)
    assert len(results.interpretation.words) + len(results.interpretation.left_out) == 395
    for hit in results:
        text = index.document(hit.id).text.split()
        assert WORDS[0] in text
        assert WORDS[5] not in text


def test_repetitions_and_unknown_words_do_not_make_a_query_long(index):
    query = " ".join([*WORDS[:200], *["absent"] * 200, *WORDS[:200]])
    results = index.search(query, spelling="off")
    assert results.interpretation.left_out == ()
    state = open_state(index.path)
    numbers = state.query_parser.parse(query, state.info.parsing).terms
    assert len(numbers) == 400
    snapshot = index.arrays
    assert {"kernel", "neighbours", "latent"}.isdisjoint(vars(snapshot))
    twice = index.search(" ".join([*WORDS[:100], *WORDS[:100]]))
    assert twice.interpretation.left_out == ()
    row = snapshot.lexical(QueryTerms.of(numbers))
    bm25 = index.scores(query, ranker="bm25", spelling="off")
    assert np.array_equal(bm25, row)
    positions, scores = index.rank(query, 5, ranker="bm25", spelling="off")
    assert scores.tolist() == row[positions].tolist()
    exact = rank_klsa(snapshot, QueryTerms.of(numbers), index.parameters(), LOCAL)
    found, _ = index.rank(query, 10, spelling="off")
    assert len({*found.tolist()} & {*np.argsort(-exact)[:10].tolist()}) >= 8


@pytest.mark.parametrize("sign", ["", "+"])
def test_a_word_that_is_too_long_for_any_index_is_unknown(index, sign):
    word = "x" * 256
    results = index.search(f"word001 {sign}{word}")
    assert results.interpretation.unknown == (word,)
    assert bool(results.total) is not bool(sign)


@pytest.mark.parametrize("piece", ["1x.", "ab-", "字"])
def test_a_word_that_is_repeated_is_corrected_once(index, monkeypatch, piece):
    corrected, read = Counter(), Counter()
    correction, runs = Corrector.correction, pieces.runs_of

    def counted(self, word, *where):
        corrected[word] += 1
        return correction(self, word, *where)

    def read_runs(text, numbers):
        read[text] += 1
        return runs(text, numbers)

    monkeypatch.setattr(Corrector, "correction", counted)
    monkeypatch.setattr(pieces, "runs_of", read_runs)
    index.search(piece * 500)
    assert max(corrected.values()) <= 3
    assert read[piece * 500] == 1
