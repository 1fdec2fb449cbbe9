import json

import pytest


def test_related_shows_words_as_they_are_written(built):
    done = built("klsa-index", "related", "cars", "engines", "-k", 3)
    assert done.code == 0
    header, first, *_ = done.out.splitlines()
    assert header.split() == ["word", "similarity", "documents"]
    assert first.split()[0] == "coolant"
    facts = built("klsa-index", "related", "cars", "engine", "-k", 1, "--json").json
    assert list(facts[0]) == ["word", "term", "similarity", "documents"]
    assert (facts[0]["term"], facts[0]["documents"]) == ("coolant", 2)


def test_related_gives_rules_that_synonyms_take(built, tmp_path):
    done = built("klsa-index", "related", "cars", "engines, cold", "-k", 2, "--rule")
    asked, _, others = done.out.strip().partition(" => ")
    assert asked == "engines cold"
    assert others
    (tmp_path / "rules.txt").write_text(done.out)
    assert built("klsa-index", "synonyms", "cars", tmp_path / "rules.txt").code == 0
    kept = built("klsa-index", "synonyms", "cars", "--json").json
    assert kept == {"engines cold": others.split(", ")}
    assert built("klsa-index", "related", "cars", "engines", "--rule", "--json").code == 2


def test_an_unknown_term_is_explained(built):
    done = built("klsa-index", "related", "cars", "zebra")
    assert (done.code, done.out) == (1, "")
    assert "term = 'zebra': no document contains it in index `cars`" in done.err


def test_duplicates(built, cars):
    done = built("klsa-index", "duplicates", "cars")
    assert (done.code, done.out) == (0, "no near-duplicates found\n")
    cars.write_text(cars.read_text() + cars.read_text().splitlines()[0].replace('"heat"', '"more"'))
    built("klsa-index", "build", cars, "--name", "cars", "--replace")
    header, first, second = built("klsa-index", "duplicates", "cars").out.splitlines()
    assert header.split() == ["group", "similarity", "id", "title"]
    assert first.split() == ["1", "1.000", "heat", "Heat"]
    assert second.split() == ["1", "1.000", "more", "Heat"]
    ((one, other),) = built("klsa-index", "duplicates", "cars", "--json").json
    assert list(one) == ["id", "title", "similarity"]
    assert (one["id"], other["id"]) == ("heat", "more")


def test_cluster(built):
    done = built("klsa-index", "cluster", "cars", "-k", 2)
    assert done.code == 0
    header, *rows = done.out.splitlines()
    assert header.split() == ["documents", "words", "central", "title"]
    assert [row.split()[0] for row in rows] == ["2", "2"]
    facts = built("klsa-index", "cluster", "cars", "-k", 2, "--json").json
    assert {tuple(sorted(one["central"])) for one in facts["clusters"]} == {
        ("cold", "heat"),
        ("road", "tyre"),
    }
    assert facts["unplaced"] == []


def test_vectors_divide_documents(shell, tmp_path):
    vectors = {"a": [1, 0], "b": [0, 1], "c": [1, 0.01], "d": [0.01, 1]}
    texts = {"a": "wing lift", "b": "lift of a wing", "c": "bread dough", "d": "dough and bread"}
    lines = [json.dumps({"id": n, "text": texts[n], "_vectors": {"m": vectors[n]}}) for n in texts]
    (tmp_path / "four.jsonl").write_text("\n".join(lines))
    assert shell("klsa-index", "build", tmp_path / "four.jsonl", "--name", "four").code == 0
    options = ("four", "--kernel", "vectors:m", "--json")
    facts = shell("klsa-index", "cluster", *options, "-k", 2).json
    assert {tuple(sorted(one["central"])) for one in facts["clusters"]} == {("a", "c"), ("b", "d")}
    groups = shell("klsa-index", "duplicates", *options).json
    assert [[one["id"] for one in group] for group in groups] == [["a", "c"], ["b", "d"]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["cluster", "cars"], 2),  # 20 clusters of 4 documents
        (["cluster", "cars", "-k", "0"], 2),
        (["duplicates", "cars", "--threshold", "0"], 2),
        (["duplicates", "cars", "--threshold", "nan"], 2),
        (["duplicates", "cars", "--kernel", "vectors:m"], 2),
        (["related", "cars"], 2),
        (["related", "nope", "engine"], 1),
    ],
)
def test_wrong_usage(built, arguments, code):
    done = built("klsa-index", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err


@pytest.mark.parametrize("what", ["map", pytest.param("spectrum", marks=pytest.mark.slow)])
def test_plot(built, tmp_path, what):
    path = tmp_path / "deep" / f"{what}.svg"
    done = built("klsa-index", "plot", "cars", "--what", what, "--out", path)
    assert (done.code, done.out) == (0, f"{path}: {what} of cars\n")
    assert path.read_text(encoding="utf-8").startswith("<?xml")


def test_a_plot_of_another_kind_or_ending_is_wrong_usage(built, tmp_path):
    for what, name in (("colours", "a.png"), ("map", "a.gif"), ("map", "a")):
        done = built("klsa-index", "plot", "cars", "--what", what, "--out", tmp_path / name)
        assert done.code == 2
    assert not list(tmp_path.glob("a*"))


def test_a_plot_without_matplotlib_says_what_to_install(built, tmp_path, monkeypatch):
    monkeypatch.setattr("klsa_search.core.installation.find_spec", lambda name: None)
    done = built("klsa-index", "plot", "cars", "--what", "map", "--out", tmp_path / "a.png")
    assert done.code == 1
    assert "pip install 'klsa-search[figures]'" in done.err
