"""Words of queries to term numbers."""

from klsa_search.analysis import Analyzer
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.engine import query_terms as query
from klsa_search.search.engine.evidence import AnswerCache, DerivedValues
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, QueryTerms, TermNumbers


def numbers_of(vocabulary):
    return TermNumbers(Analyzer(), vocabulary, DerivedValues(AnswerCache().present()))


def test_words_have_the_numbers_of_their_terms():
    numbers = numbers_of(Vocabulary(["wing"]))
    assert [numbers[word] for word in ("Wings", "wing", "the", "drag") * 2] == [
        0, 0, NO_TERM, UNKNOWN, 0, 0, NO_TERM, UNKNOWN,
    ]  # fmt: skip


def test_cache_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(query, "CACHE_SIZE", 10)
    numbers = numbers_of(Vocabulary(["word3", "word7"]))
    for number in range(100):
        assert numbers[f"word{number}"] == {3: 0, 7: 1}.get(number, UNKNOWN)
        assert len(numbers.cache) <= 10


def test_long_words_are_found_but_not_cached():
    """A query may be one word of 10,000 letters, and 65,536 of those would be held."""
    numbers = numbers_of(Vocabulary(["x" * 64, "x" * 65]))
    assert [numbers["x" * 64], numbers["x" * 65], numbers["y" * 10_000]] == [0, 1, NO_TERM]
    assert [*numbers.cache] == ["x" * 64]


def test_terms_are_counted_and_the_unknown_left_out():
    terms = QueryTerms.of([5, UNKNOWN, 2, 5])
    assert (terms.numbers.tolist(), terms.counts.tolist()) == ([2, 5], [1.0, 2.0])
