"""Answers about documents are found again only after a write that may have changed them."""

import pytest

from klsa_search.search.engine import evidence as module
from klsa_search.search.engine.evidence import AnswerCache

WING, DRAG, FLOW, NEW = range(4)


@pytest.fixture
def cache():
    cache = AnswerCache()
    cache.present().put("wing drag", 1)
    return cache


@pytest.mark.parametrize("terms", [[], [FLOW], [WING, FLOW], [DRAG, NEW]])
def test_an_answer_survives_writes_of_documents_that_lack_one_of_its_terms(cache, terms):
    cache.write(terms, 4)
    assert cache.present().get("wing drag", [WING, DRAG, -1]) == 1


def test_an_answer_is_found_again_after_a_document_with_all_of_its_terms(cache):
    cache.write([DRAG, WING], 3)
    assert cache.present().of("wing drag", [WING, DRAG], lambda: 2) == 2
    assert cache.present().of("wing drag", [WING, DRAG], lambda: 3) == 2


def test_an_answer_without_terms_is_that_of_one_state(cache):
    present = cache.present()
    assert present.of("stop words", [-3], lambda: 7) == present.get("stop words", [-3]) == 7
    cache.write([FLOW], 3)
    assert cache.present().get("stop words", [-3]) is None


def test_all_answers_can_be_forgotten(cache):
    cache.forget()
    assert cache.present().get("wing drag", [WING, DRAG]) is None


def test_an_earlier_state_neither_uses_nor_replaces_answers_of_a_later_one(cache):
    earlier = cache.present()
    cache.write([WING, DRAG], 3)
    cache.present().put("wing drag", 2)
    assert earlier.of("wing drag", [WING, DRAG], lambda: 1) == 1
    assert cache.present().get("wing drag", [WING, DRAG]) == 2


def test_an_earlier_state_uses_later_answers_that_no_write_has_changed(cache):
    earlier = cache.present()
    cache.write([FLOW], 3)
    cache.present().put("drag", 5)
    assert earlier.get("drag", [DRAG]) == 5


def test_the_number_of_answers_is_limited(cache, monkeypatch):
    monkeypatch.setattr(module, "CAPACITY", 3)
    present = cache.present()
    for question in range(10):
        present.put(question, question)
    assert len(cache.answers) <= 3
