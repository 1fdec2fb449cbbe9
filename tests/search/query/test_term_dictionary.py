"""Caches of looked-up words are bounded and safe with threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

from klsa_search.search.engine import answer_cache
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.query.term_dictionary import TermDictionary


def test_written_forms_survive_that_another_thread_forgets_them(few_words, monkeypatch):
    monkeypatch.setattr(answer_cache, "CAPACITY", 1)
    numbers = few_words.arrays.vocabulary.numbers
    wing, drag, flow = (numbers[term] for term in ("wing", "drag", "flow"))
    interruptions = []

    def documents_at(positions):
        if interruptions:
            interruptions.pop()()
        return few_words.documents_at(positions)

    lexicon = TermDictionary(few_words.arrays, few_words.analyzer, documents_at)
    expected = lexicon.forms([wing, drag], Evidence())
    assert lexicon.forms([wing], Evidence()) == expected[:1]  # which is all that is remembered now
    interruptions.append(lambda: lexicon.forms([flow], Evidence()))
    assert lexicon.forms([wing, drag], Evidence()) == expected


def test_threads_look_up_forms_while_others_forget_them(few_words, monkeypatch):
    monkeypatch.setattr(answer_cache, "CAPACITY", 1)
    numbers = few_words.arrays.vocabulary.numbers
    wing, drag, flow = (numbers[term] for term in ("wing", "drag", "flow"))
    asked = [[wing], [drag], [flow, wing]]
    lexicon = TermDictionary(few_words.arrays, few_words.analyzer, few_words.documents_at)
    expected = [lexicon.forms(each, Evidence()) for each in asked]

    def again(number):
        each = number % len(asked)
        return all(lexicon.forms(asked[each], Evidence()) == expected[each] for _ in range(30))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(again, range(6)))
    finally:
        sys.setswitchinterval(interval)
