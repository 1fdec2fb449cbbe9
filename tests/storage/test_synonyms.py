"""Synonyms: both forms are equivalent, and every change of the index keeps them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.errors import IndexNotFound, SettingsError
from klsa_search.storage.synonyms import (
    checked_synonyms,
    synonyms_of_text,
    write_synonyms,
)
from tests.support.catalogs import read_synonyms

TV = {"tv": ("television",), "television": ("tv",)}
WORDS = st.text("ab é,雪", min_size=1, max_size=6).filter(str.strip)


@pytest.fixture
def path(tmp_path):
    build([{"id": "one", "text": "A television."}], name="one", home=tmp_path).close()
    return tmp_path / "one"


def test_rules_and_words_mean_the_same():
    rules = ["tv, television", "phone  => iphone , galaxy s", "cell phone, mobile => phone"]
    assert checked_synonyms(rules) == {
        **TV,
        "phone": ("iphone", "galaxy s"),
        "cell phone": ("phone",),
        "mobile": ("phone",),
    }
    assert checked_synonyms({"tv": ["television", "tv"], "none": []}) == {"tv": ("television",)}
    assert checked_synonyms(["a, b", "a, c"])["a"] == ("b", "c")
    assert checked_synonyms([r"x\,y => z"]) == {"x,y": ("z",)}


def test_files_are_rules_or_json():
    text = "# of Solr\n\ntv, television\n"
    assert synonyms_of_text(text) == synonyms_of_text(json.dumps(TV)) == TV
    assert synonyms_of_text('["tv, television"]') == TV
    assert synonyms_of_text("") == {}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("tv, television", "list of rules"),
        ({"tv": "television"}, "not a list"),
        ({"tv": [1]}, "not a word"),
        ([("tv", "television")], "not a rule"),
        (["tv"], "only one word"),
        (["tv, "], "blank"),
        (["=> tv"], "blank"),
        ({"": ["tv"]}, "blank"),
        (["tv => television => set"], "more than one =>"),
        ({"tv": ["\ud800"]}, "half of a character"),
        ({"t\0v": ["tv"]}, "NUL"),
        ({"x" * 101: ["tv"]}, "more than 100 characters"),
        ({"tv": map(str, range(101))}, "more than 100 synonyms"),
        ({str(n): ["tv"] for n in range(10_001)}, "10,000 words"),
        ([", ".join(map(str, range(102)))], "more than 100 synonyms"),
        ([", ".join(f"{n} {m}" for m in range(100)) for n in range(20)], "100,000"),
        (7, "list of rules"),
    ],
)
def test_invalid_synonyms_are_refused(wrong, said):
    with pytest.raises(SettingsError, match=said) as caught:
        checked_synonyms(wrong)
    assert caught.value.field == "synonyms"


@pytest.mark.parametrize("text", ["{", '{"tv": 1}', "[" * 100_000, "tv"])
def test_texts_that_are_refused(text):
    with pytest.raises(SettingsError, match="synonyms"):
        synonyms_of_text(text)


@given(st.dictionaries(WORDS, st.lists(WORDS, max_size=3), max_size=4))
def test_listed_synonyms_can_be_read_again(synonyms):
    found = checked_synonyms(synonyms)
    assert checked_synonyms(found) == synonyms_of_text(json.dumps(found)) == found


def test_setting_no_synonyms_removes_them(path, tmp_path):
    write_synonyms(path, TV)
    write_synonyms(path, {})
    assert read_synonyms(path) == {}
    with pytest.raises(IndexNotFound):
        write_synonyms(tmp_path / "none", TV)
