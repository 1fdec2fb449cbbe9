"""Rules: what is refused names the rule, and every change of the index keeps them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.errors import IndexNotFound, RuleNotFound, SettingsError
from klsa_search.indexing import refit
from klsa_search.search.query.rules import checked_rules
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.maintenance import copy_index, delete_index, rollback, verify_shared
from klsa_search.storage.rules import change_rule, write_rules
from klsa_search.storage.synonyms import write_synonyms
from tests.support.catalogs import read_rules, read_synonyms

HIDE = {"hide": ["one"]}
RULES = checked_rules(
    [
        {"id": "first", "when": {"query_is": "red"}, "then": {"pin": [{"id": "x", "position": 2}]}},
        {"id": "second", "then": {**HIDE, "boost": [{"filter": "price < 5", "factor": 2}]}},
    ]
)


@pytest.fixture
def path(tmp_path):
    build([{"id": "one", "text": "A television."}], name="one", home=tmp_path).close()
    return tmp_path / "one"


def pins(*pairs):
    return {"pin": [{"id": id_, "position": position} for id_, position in pairs]}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"then": HIDE}, "a rule without id"),
        ({"id": "no blank", "then": HIDE}, "letters"),
        ({"id": "x"}, "rule 'x': then: Field required"),
        ({"id": "x", "then": {}}, "nothing to do"),
        ({"id": "x", "then": HIDE, "wen": {}}, "rule 'x': wen: unknown field"),
        ({"id": "x", "when": {"query": "a"}, "then": HIDE}, "when.query: unknown field"),
        ({"id": "x", "when": {"query_is": " "}, "then": HIDE}, "when.query_is: it is blank"),
        ({"id": "x", "when": {"query_is": "a", "query_contains": "b"}, "then": HIDE}, "exclude"),
        ({"id": "x", "when": {"query_is": "a\0"}, "then": HIDE}, "NUL"),
        ({"id": "x", "when": {"from": "2026-12-01"}, "then": HIDE}, "time zone"),
        ({"id": "x", "when": {"until": 7}, "then": HIDE}, "when.until"),
        (
            {
                "id": "x",
                "when": {"from": "2026-12-01T00:00:00Z", "until": "2026-12-01T00:00:00+01:00"},
                "then": HIDE,
            },
            "from is not before until",
        ),
        ({"id": "x", "when": {"filter": "price <"}, "then": HIDE}, "rule 'x': when.filter"),
        ({"id": "x", "then": pins(("a", 0))}, r"then.pin\[0\].position"),
        ({"id": "x", "then": pins(("a", 1.5))}, r"then.pin\[0\].position"),
        ({"id": "x", "then": pins(("a", 1), ("a", 2))}, "'a' is given twice"),
        ({"id": "x", "then": pins(("a", 1), ("b", 1))}, "position 1 is given twice"),
        ({"id": "x", "then": {**pins(("a", 1)), "hide": ["a"]}}, "pin and hide"),
        ({"id": "x", "then": pins(*((str(n), n + 1) for n in range(101)))}, "100"),
        ({"id": "x", "then": {"hide": ["ä" * 300]}}, "512 bytes"),
        ({"id": "x", "then": {"hide": "one"}}, "then.hide"),
        ({"id": "x", "then": {"boost": [{"filter": "a = b", "factor": 0}]}}, "factor"),
        ({"id": "x", "then": {"boost": [{"filter": "a = b", "factor": float("inf")}]}}, "factor"),
        ({"id": "x", "then": {"boost": [{"filter": "a = ", "factor": 2}]}}, r"boost\[0\].filter"),
        (7, "a rule without id"),
    ],
)
def test_invalid_rules_are_named(wrong, said):
    with pytest.raises(SettingsError, match=said) as caught:
        checked_rules([{"id": "fine", "then": HIDE}, wrong])
    assert caught.value.field == "rules"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"id": "x"}, "not a list"),
        (7, "not a list"),
        ([{"id": "x", "then": HIDE}] * 2, "'x' is given twice"),
        ([{"id": str(n), "then": HIDE} for n in range(1_001)], "1,001 rules"),
    ],
)
def test_invalid_lists_are_refused(wrong, said):
    with pytest.raises(SettingsError, match=said):
        checked_rules(wrong)


PARTS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
NAMES = st.sampled_from(["id", "when", "then", "pin", "hide", "boost", "query_is", "until"])


@given(st.lists(st.dictionaries(NAMES, PARTS | st.dictionaries(NAMES, PARTS)), max_size=2))
def test_any_json_is_read_or_refused(given_):
    try:
        rules = checked_rules(given_)
    except SettingsError:
        return
    assert checked_rules([rule.as_json() for rule in rules]) == rules


def test_changes_of_the_index_keep_rules_synonyms_and_judgements(path, tmp_path):
    synonyms = {"tv": ("television",)}

    def kept(folder):
        (judged,) = Judgements(folder).queries()
        grades = (judged.text, dict(judged.grades))
        return read_rules(folder), read_synonyms(folder), grades

    write_rules(path, RULES)
    write_synonyms(path, synonyms)
    Judgements(path).put("tv", "one", 1)
    before = kept(path)
    assert before[:2] == (RULES, synonyms)
    index = open_index(path)
    index.add([{"id": "two", "text": "Another."}])
    index.delete(["two"])
    index.close()
    for changes in ({}, {"alpha": 0.5}):
        refit(path, **changes).close()
    rollback(path)
    build([{"id": "new", "text": "x"}], name="one", home=tmp_path, replace=True).close()
    assert kept(path) == before
    verify_shared(path)
    copy_index(path, tmp_path / "copy")
    assert kept(tmp_path / "copy") == before
    assert delete_index(path) == []
    assert not path.exists()


def test_single_rules_keep_their_place(path):
    write_rules(path, RULES)
    (changed,) = checked_rules([{"id": "first", "then": HIDE}])
    (third,) = checked_rules([{"id": "third", "then": HIDE}])
    change_rule(path, "first", changed)
    change_rule(path, "third", third)
    assert read_rules(path) == (changed, RULES[1], third)
    change_rule(path, "second", None)
    assert read_rules(path) == (changed, third)
    with pytest.raises(RuleNotFound, match="second"):
        change_rule(path, "second", None)
    write_rules(path, ())
    assert read_rules(path) == ()
    with pytest.raises(IndexNotFound):
        write_rules(path.parent / "none", RULES)


def test_too_many_single_rules_are_refused(path):
    write_rules(path, checked_rules([{"id": str(n), "then": HIDE} for n in range(1_000)]))
    (one_more,) = checked_rules([{"id": "more", "then": HIDE}])
    with pytest.raises(SettingsError, match="1,001"):
        change_rule(path, "more", one_more)
    assert len(read_rules(path)) == 1_000
