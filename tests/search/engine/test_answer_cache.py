"""Answers about documents are found again only after a write that may have changed them."""

import pytest

from klsa_search.search.engine import evidence as module
from klsa_search.search.engine.evidence import AnswerCache, DerivedValues, bucket_of

WING, DRAG, FLOW, NEW = range(4)
NAMES = "wing", "drag", "flow", "new"


def named(terms):
    return {term: NAMES[term] for term in terms}


@pytest.fixture
def cache():
    cache = AnswerCache()
    cache.present().put("wing drag", 1)
    return cache


@pytest.mark.parametrize("terms", [[], [FLOW], [WING, FLOW], [DRAG, NEW]])
def test_an_answer_survives_writes_of_documents_that_lack_one_of_its_terms(cache, terms):
    cache.write(named(terms), 4)
    assert cache.present().get("wing drag", [WING, DRAG, -1]) == 1


def test_an_answer_is_found_again_after_a_document_with_all_of_its_terms(cache):
    cache.write(named([DRAG, WING]), 3)
    assert cache.present().of("wing drag", [WING, DRAG], lambda: 2) == 2
    assert cache.present().of("wing drag", [WING, DRAG], lambda: 3) == 2


def test_an_answer_without_terms_is_that_of_one_state(cache):
    present = cache.present()
    assert present.of("stop words", [-3], lambda: 7) == present.get("stop words", [-3]) == 7
    cache.write(named([FLOW]), 3)
    assert cache.present().get("stop words", [-3]) is None


def test_all_answers_can_be_forgotten(cache):
    cache.forget()
    assert cache.present().get("wing drag", [WING, DRAG]) is None


def test_an_earlier_state_neither_uses_nor_replaces_answers_of_a_later_one(cache):
    earlier = cache.present()
    cache.write(named([WING, DRAG]), 3)
    cache.present().put("wing drag", 2)
    assert earlier.of("wing drag", [WING, DRAG], lambda: 1) == 1
    assert cache.present().get("wing drag", [WING, DRAG]) == 2


def test_an_earlier_state_uses_later_answers_that_no_write_has_changed(cache):
    earlier = cache.present()
    cache.write(named([FLOW]), 3)
    cache.present().put("drag", 5)
    assert earlier.get("drag", [DRAG]) == 5


def test_the_number_of_answers_is_limited(cache, monkeypatch):
    monkeypatch.setattr(module, "CAPACITY", 3)
    present = cache.present()
    for question in range(10):
        present.put(question, question)
    assert len(cache.answers) <= 3


def derived_from(values, *terms):
    """Return what is derived from terms: a number that differs each time it is derived."""

    def derive():
        values.note(map(bucket_of, terms))
        return object()

    return values.of("key", derive)


def test_a_derived_value_survives_writes_of_documents_without_its_terms(cache):
    value = derived_from(DerivedValues(cache.present()), "wing", "drag")
    cache.write(named([FLOW, NEW]), 4)
    assert derived_from(DerivedValues(cache.present()), "wing", "drag") is value
    cache.write(named([DRAG]), 4)
    assert derived_from(DerivedValues(cache.present()), "wing", "drag") is not value


def test_an_earlier_state_uses_no_value_that_was_derived_after_a_write_of_its_terms(cache):
    earlier = DerivedValues(cache.present())
    cache.write(named([WING]), 3)
    value = derived_from(DerivedValues(cache.present()), "wing")
    assert derived_from(earlier, "wing") is not value


def test_a_value_derived_from_another_depends_on_its_terms(cache):
    values = DerivedValues(cache.present())
    derived_from(values, "wing")
    outer = values.of("outer", lambda: derived_from(values, "wing"))
    cache.write(named([WING]), 3)
    values = DerivedValues(cache.present())
    assert values.of("outer", lambda: derived_from(values, "wing")) is not outer


def test_what_depends_on_all_documents_is_derived_for_each_configuration_and_state(cache):
    values = DerivedValues(cache.present())
    value = values.of("key", lambda: values.note_all() or object())
    assert values.of("key", object) is value
    assert DerivedValues(cache.present()).of("key", object) is not value


def test_what_depends_on_all_documents_keeps_no_terms_beside_that(cache):
    values = DerivedValues(cache.present())
    values.of("key", lambda: values.note(map(bucket_of, NAMES)) or values.note_all())
    assert cache.derived["key"].buckets.tolist() == [module.ALL_TERMS]


def test_the_number_of_derived_values_is_limited(cache, monkeypatch):
    monkeypatch.setattr(module, "MAX_CACHED", 3)
    values = DerivedValues(cache.present())
    for number in range(10):
        assert values.of(number, lambda: number) == number  # noqa: B023
    assert len(cache.derived) <= 3


def test_values_of_long_keys_are_not_kept(cache):
    values, long = DerivedValues(cache.present()), ("word", "e" * module.MAX_KEY)
    assert [values.of(long, lambda: number) for number in (1, 2)] == [1, 2]  # noqa: B023
    assert not cache.derived
