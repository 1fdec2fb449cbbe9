import re

import pytest

from klsa_search.config import AnalysisSettings, Settings


def test_build_ends_with_a_summary(shell, cars):
    done = shell("klsa-index", "build", cars, "--name", "cars")
    assert (done.code, done.err) == (0, "")
    for fact in ("documents        4\n", "terms", "non-zeros", "spectrum (bm25)", "peak memory"):
        assert fact in done.out


def test_the_summary_for_programs(shell, cars):
    done = shell("klsa-index", "build", cars, "--name", "cars", "--json")
    facts = done.json
    assert facts["name"] == "cars"
    assert facts["counts"]["documents"] == 4
    assert facts["skipped"] == {"count": 0, "first": []}
    assert facts["bytes"] > 0


def test_option_beats_config_beats_preset(shell, cars, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("k1 = 0.9\nalpha = 0.3\nstop_words = true\n")
    build = ["klsa-index", "build", cars, "--name", "cars", "--json", "--preset", "paper"]
    settings = shell(*build, "--config", config, "--alpha", 0.5, "--no-stop-words").json["settings"]
    assert settings["alpha"] == 0.5
    assert settings["stop_words"] is False
    assert settings["k1"] == 0.9
    assert settings["z"] == Settings.of_preset("paper").z == 1


def test_a_config_may_name_the_preset_and_an_option_beats_it(shell, cars, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text('preset = "paper"\nk1 = 0.9\n')
    build = ["klsa-index", "build", cars, "--name", "cars", "--json", "--config", config]
    settings = shell(*build).json["settings"]
    assert (settings["z"], settings["k1"]) == (Settings.of_preset("paper").z, 0.9)
    settings = shell(*build, "--preset", "default").json["settings"]
    assert (settings["z"], settings["k1"]) == (Settings().z, 0.9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("k1 =", "bad.toml is not TOML"),
        ("k2 = 1", "bad.toml: there is no setting 'k2'; there are: preset, alpha"),
        ("home = 'x'", "bad.toml: there is no setting 'home'"),
        ("name = 'x'", "bad.toml: there is no setting 'name'"),
        ("progress = 1", "bad.toml: there is no setting 'progress'"),
        ("preset = 'mine'", "no preset 'mine'"),
        ("preset = ['paper']", "no preset ['paper']"),
        ("b = 7", "b = 7"),
        ("b = '1'", "b"),
        ("b = nan", "b = nan"),
    ],
)
def test_a_bad_config_is_explained(shell, cars, tmp_path, text, sentence):
    config = tmp_path / "bad.toml"
    config.write_text(text)
    done = shell("klsa-index", "build", cars, "--name", "cars", "--config", config)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_every_setting_is_an_option(shell):
    text = shell("klsa-index", "build", "--help").out
    for name in Settings.model_fields:
        assert "--" + name.replace("_", "-") in text
    text = shell("klsa-index", "analyze", "--help").out
    for name in AnalysisSettings.model_fields:
        assert "--" + name.replace("_", "-") in text


@pytest.mark.parametrize(
    "arguments", [["--b", "3"], ["--z", "0"], ["--ranker", "best"], ["--preset", "mine"], ["--q"]]
)
def test_wrong_usage(shell, cars, arguments):
    assert shell("klsa-index", "build", cars, "--name", "cars", *arguments).code == 2


def test_bad_records_stop_or_are_counted(shell, tmp_path):
    source = tmp_path / "broken.jsonl"
    source.write_text('{"id": "1", "text": "one"}\n{"id": \n{"id": "2", "text": "two"}\n')
    build = ["klsa-index", "build", source, "--name", "it"]
    done = shell(*build)
    assert done.code == 1
    assert "broken.jsonl:2" in done.err
    assert shell("klsa-index", "list").out == "index holds no index\n"
    done = shell(*build, "--on-error", "skip")
    assert done.code == 0
    assert "skipped 1 bad record" in done.err
    assert "broken.jsonl:2" in done.err
    first = shell(*build, "--on-error", "skip", "--json").json["skipped"]
    assert first["count"] == 1
    assert "broken.jsonl:2" in first["first"][0]


def test_list_info_verify_delete(shell, cars, tmp_path):
    shell("klsa-index", "build", cars, "--name", "cars")
    header, row = shell("klsa-index", "list").out.splitlines()
    assert header.split() == ["name", "documents", "size", "built", "source"]
    assert row.split()[:2] == ["cars", "4"]
    assert [facts["name"] for facts in shell("klsa-index", "list", "--json").json] == ["cars"]

    info = shell("klsa-index", "info", "cars").out
    assert "fingerprint" in info
    assert re.search(r"^stop words +yes$", info, flags=re.MULTILINE)
    assert shell("klsa-index", "info", "cars", "--json").json["settings"]["k1"] == 1.2

    assert "all as built" in shell("klsa-index", "verify", "cars").out
    array = next((tmp_path / "index" / "cars").glob("0*/eigenvectors.npy"))
    array.write_bytes(array.read_bytes()[:-1] + b"\x01")
    done = shell("klsa-index", "verify", "cars")
    assert done.code == 1
    assert "eigenvectors.npy" in done.err

    assert shell("klsa-index", "delete", "cars", "--yes").code == 0
    assert shell("klsa-index", "info", "cars").code == 1


@pytest.mark.parametrize("content", ["", '{"id": \n'])
def test_an_index_of_nothing_is_warned_of(shell, tmp_path, content):
    source = tmp_path / "empty.jsonl"
    source.write_text(content)
    done = shell("klsa-index", "build", source, "--name", "it", "--on-error", "skip")
    assert done.code == 0
    assert done.err.startswith(f"warning: {source} holds no document, so it finds nothing\n")


def test_an_index_of_nothing_does_not_replace_another(shell, cars):
    build = ["klsa-index", "build", cars, "--name", "cars"]
    shell(*build)
    cars.write_text("")
    done = shell(*build)
    assert done.code == 1
    assert "holds no document" in done.err
    assert shell("klsa-index", "list").out.splitlines()[1].split()[:2] == ["cars", "4"]


def test_a_damaged_index_hides_no_other(shell, cars, tmp_path):
    for name in ("a", "b", "c"):
        shell("klsa-index", "build", cars, "--name", name)
    (tmp_path / "index" / "a" / "CURRENT").write_text("000007\n")
    (tmp_path / "index" / "b" / "000001" / "manifest.json").write_text("{")
    done = shell("klsa-index", "list")
    assert (done.code, done.err) == (0, "")
    first, second, third = done.out.splitlines()[1:]
    assert first.startswith("a ")
    assert "unusable: index/a/CURRENT names generation '000007'" in first
    assert "unusable: index/b/000001/manifest.json cannot be read" in second
    assert third.split()[:2] == ["c", "4"]
    a, b, c = shell("klsa-index", "list", "--json").json
    assert (list(a), list(b)) == (["name", "error"], ["name", "error"])
    assert c["counts"]["documents"] == 4
    for name in ("a", "b"):
        assert shell("klsa-index", "delete", name, "--yes").code == 0
    assert shell("klsa-index", "delete", "a").code == 1
    assert [facts["name"] for facts in shell("klsa-index", "list", "--json").json] == ["c"]


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, True), ("y\n", 0, False)])
def test_delete_asks(shell, cars, tmp_path, monkeypatch, answer, code, left):
    shell("klsa-index", "build", cars, "--name", "cars")
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer.strip())
    assert shell("klsa-index", "delete", "cars").code == code
    assert (tmp_path / "index" / "cars").exists() is left


def test_analyze_shows_terms_with_positions(shell):
    done = shell("klsa-index", "analyze", "The engines of a car", "--json")
    assert [(t["term"], t["position"]) for t in done.json] == [("engin", 1), ("car", 4)]
    assert shell("klsa-index", "analyze", "the of").out == "no term is left of it\n"
    kept = shell("klsa-index", "analyze", "the engines", "--no-stop-words", "--stemmer", "none")
    assert [line.split() for line in kept.out.splitlines()[1:]] == [
        ["0", "the", "the"],
        ["1", "engines", "engines"],
    ]


def test_analyze_as_an_index_does(shell, cars):
    shell("klsa-index", "build", cars, "--name", "cars", "--stemmer", "none")
    done = shell("klsa-index", "analyze", "the engines", "--name", "cars", "--json")
    assert [token["term"] for token in done.json] == ["engines"]
    both = shell("klsa-index", "analyze", "x", "--name", "cars", "--stemmer", "none")
    assert both.code == 2
