"""Caches outlive writes, and answers are those of an index that is opened again."""

import random
import re
from contextlib import closing

import pytest

from klsa_search import open_index
from klsa_search.indexing.build import build
from klsa_search.search.query import corrections

WORDS = ["propeller", "turbine", "turbines", "winglet", "winglets", "dragon", "drag", "flow"]
WORDS += ["shock", "wave", "boundary", "71-3/4"]
PARTS = ["data", "base", "database", "air", "foil", "air-foil", "airfoil", "10", "mm", "10mm"]
PARTS += ["shockwave", "wi-fi", "wifi", "the", "naïve", "飛行", "飛"]
PLAIN = ["data base", "database flow", "air foil drag", "airfoil the shockwave", "10 mm wave 10mm"]
PLAIN += ["wi-fi", "wifi turbine", "shock wave", "naïve drag", "飛 flow", "winglet", "winglets"]
TYPOS = ["propelelr", "turbnie", "wniglet", "flowshock", "bound", "shokc wave", "drag 71-3/4"]
FILTERS = ["kind = a", "NOT kind = b", "size > 3", "id IN [new-1, d2]", "kind = a AND size < 5"]


def document(chance, name):
    words = chance.choices(WORDS + chance.sample(PARTS, 3), k=chance.randrange(1, 12))
    return {
        "id": name,
        "title": " ".join(words[:2]),
        "text": " ".join(words),
        "kind": chance.choice("abc"),
        "size": chance.randrange(9),
    }


@pytest.fixture
def index(tmp_path):
    chance = random.Random(1)
    documents = [document(chance, f"d{number}") for number in range(30)]
    with closing(build(documents, name="caches", home=tmp_path)) as index:
        yield index


def answers(index):
    """Return what may come from caches: suggestions, corrections, phrases, filters and facets."""
    return (
        [index.suggest(text) for text in ["pro", "tur", "shock w", "winglets d", "flwo", "new"]],
        [
            (result.interpretation, [(hit.id, hit.score) for hit in result.hits])
            for result in map(index.search, TYPOS + PLAIN)
        ],
        [
            (result.total, [hit.id for hit in result.hits], result.facets)
            for result in (
                index.search("turbine OR drag", filter=each, facets=["kind"], sort=["size"], k=50)
                for each in FILTERS
            )
        ],
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_answers_after_any_writes_are_those_of_an_index_opened_again(index, seed, monkeypatch):
    monkeypatch.setattr(corrections, "MIN_DOCUMENTS", 31)  # above or below after each write
    chance = random.Random(seed)
    earlier = [(index.snapshot(), answers(index))]
    for number in range(5):
        names = [f"new-{chance.randrange(6)}", f"d{chance.randrange(30)}"]
        if chance.random() < 0.6:
            new = document(chance, chance.choice(names))
            if number % 4 == 0:
                new["text"] += f" unheard{number} wingletter"
            index.add([new])
        else:
            index.delete([chance.choice(names)])
        present = answers(index)
        with closing(open_index(index.path.parent)) as opened:
            assert present == answers(opened)
        if number == 2:
            earlier.append((index.snapshot(), present))
    for snapshot, before in earlier:
        assert answers(snapshot) == before


def test_a_write_leaves_caches_of_other_documents_as_they_are(index):
    before = answers(index)
    snapshot = index.arrays
    (run,) = snapshot.vocabulary.runs.runs
    names, letters = run.names, run.letters
    length = round(snapshot.lengths.mean())  # another mean length changes all weights
    index.add([{"id": "new", "text": " ".join(f"unheard{number}" for number in range(length))}])
    written = index.arrays
    assert written is not snapshot
    assert written.vocabulary.runs.runs[0].names is names
    assert written.vocabulary.runs.runs[0].letters is letters
    shock = written.vocabulary.numbers["shock"]
    forms = written.answers.get(("forms", shock), [shock])
    assert forms is not None
    assert forms is snapshot.answers.get(("forms", shock), [shock])
    assert answers(index)[0] == before[0]
    derived, later = snapshot.answers.cache.derived, written.answers.cache.derived
    same = {kind for kind, *of in derived if later[kind, *of].value is derived[kind, *of].value}
    assert same >= {"piece", "form", "parts", "divides"}


def by_neighbours(text):
    """Find words as segmenters do: in two parts if nothing stands beside them."""
    words = [(match[0], *match.span()) for match in re.finditer(r"[^\W_]+", text)]
    if len(words) == 1 and len(text) > 1:
        ((_, first, after),) = words
        half = (first + after) // 2
        return [(text[first:half], first, half), (text[half:after], half, after)]
    return words


def test_words_of_a_tokenizer_in_several_languages_are_looked_up_again_after_writes(tmp_path):
    settings = {"language": "german,english", "tokenizer": by_neighbours}
    texts = ["sea floor", "sea floor", "seafloor drag"]
    records = [{"id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    with closing(build(records, name="segmented", home=tmp_path, **settings)) as index:
        assert index.search("seafloor drag").interpretation.variants == {"seafloor": "sea floor"}
        index.add({"id": f"new{n}", "title": "", "text": "seafloor drag"} for n in range(6))
        after = index.search("seafloor drag").interpretation
        assert not after.variants
        with closing(open_index(index.path.parent)) as opened:
            assert after == opened.search("seafloor drag").interpretation
