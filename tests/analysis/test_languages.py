import pytest
import Stemmer

from klsa_search.analysis.languages import algorithm, languages, stemmers, stop_list
from klsa_search.errors import SettingsError


def test_every_snowball_language_is_a_language():
    assert set(Stemmer.algorithms()) - {"porter", "dutch_porter"} <= set(languages())
    assert set(Stemmer.algorithms()) | {"auto", "none"} == set(stemmers())
    assert list(languages()) == sorted(languages())


def test_every_language_has_its_parts():
    without = {name for name in languages() if not stop_list(name)}
    assert without == {"nepali", "none", "serbian", "tamil", "yiddish"} & set(languages())
    for name in languages():
        assert algorithm("auto", name) in {None, "porter", name}


@pytest.mark.parametrize(
    ("language", "word"),
    [("french", "avec"), ("german", "nicht"), ("russian", "что"), ("chinese", "的")],
)
def test_lists_are_those_of_their_language(language, word):
    assert word in stop_list(language)


def test_english_list_leaves_what_people_search_for():
    listed = stop_list("english")
    assert {"the", "and", "don't", "of", "what"} <= listed
    assert not {"computer", "system", "html", "fire", "join", "uk"} & listed


@pytest.mark.parametrize(
    ("stemmer", "language", "name"),
    [
        ("auto", "english", "porter"),
        ("auto", "german", "german"),
        ("auto", "chinese", None),
        ("auto", "none", None),
        ("none", "english", None),
        ("english", "french", "english"),
    ],
)
def test_algorithm(stemmer, language, name):
    assert algorithm(stemmer, language) == name


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(SettingsError, match=r"no language 'klingon'; .*english, .*french") as error:
        stop_list("klingon")
    assert error.value.field == "language"
    with pytest.raises(SettingsError, match=r"no stemmer 'x'; .*auto, .*porter") as error:
        algorithm("x", "english")
    assert error.value.field == "stemmer"
