import re
import shutil
import sys
from pathlib import Path

import pytest

from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.core.config import Settings
from tests.storage.worlds import point_current

from .conftest import Terminal


def test_a_build_ends_with_a_summary(shell, cars):
    build = ["klsa-index", "build", cars, "--name", "cars"]
    done = shell(*build)
    assert (done.code, done.err) == (0, "")
    facts = dict(re.split("  +", line, maxsplit=1) for line in done.out.splitlines())
    assert (facts["documents"], facts["language detected"]) == ("4", "english, 100% of the text")
    assert {"terms", "non-zeros", "spectrum (bm25)", "peak memory"} <= set(facts)
    assert "not read" not in facts
    facts = shell(*build, "--json").json
    assert (facts["name"], facts["counts"]["documents"]) == ("cars", 4)
    assert facts["skipped"] == {"count": 0, "first": [], "kinds": {}}
    assert facts["unread"] == {"count": 0, "kinds": {}, "first": {}}
    assert facts["bytes"] > 0


def test_option_beats_config_beats_preset(shell, cars, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text('k1 = 0.9\nalpha = 0.3\nstop_words = "long"\nfields = ["year:number"]\n')
    cars.write_text('{"id": "a", "text": "roads", "year": 1}\n')
    build = ["klsa-index", "build", cars, "--name", "cars", "--json", "--config", config]
    options = ["--preset", "paper", "--alpha", 0.5, "--stop-words", "none", "--field", "year"]
    settings = shell(*build, *options).json["settings"]
    assert (settings["alpha"], settings["stop_words"]) == (0.5, "none")
    assert (settings["k1"], settings["fields"]) == (0.9, ["year"])
    assert settings["z"] == Settings.of_preset("paper").z == 1
    config.write_text('preset = "paper"\nk1 = 0.9\nfields = ["year:number"]\n')
    settings = shell(*build).json["settings"]
    assert (settings["z"], settings["k1"], settings["fields"]) == (1, 0.9, ["year:number"])
    settings = shell(*build, "--preset", "default").json["settings"]
    assert (settings["z"], settings["k1"]) == (Settings().z, 0.9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("k1 =", "bad.toml is not valid TOML"),
        ("k2 = 1", "bad.toml: unknown setting 'k2'; the settings are: preset, alpha"),
        ("home = 'x'", "bad.toml: unknown setting 'home'"),
        ("name = 'x'", "bad.toml: unknown setting 'name'"),
        ("progress = 1", "bad.toml: unknown setting 'progress'"),
        ("preset = 'mine'", "preset 'mine'"),
        ("preset = ['paper']", "preset ['paper']"),
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
        assert "--" + {"fields": "field"}.get(name, name).replace("_", "-") in text
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
    assert shell("klsa-index", "list").out == "no indexes in index\n"
    done = shell(*build, "--on-error", "skip")
    assert done.code == 0
    assert "skipped 1 bad record" in done.err
    assert "broken.jsonl:2" in done.err
    first = shell(*build, "--on-error", "skip", "--json").json["skipped"]
    assert first["count"] == 1
    assert "broken.jsonl:2" in first["first"][0]


def test_list_info_verify_delete(shell, built, tmp_path):
    header, row = shell("klsa-index", "list").out.splitlines()
    assert header.split() == ["name", "documents", "size", "built", "source"]
    assert row.split()[:2] == ["cars", "4"]
    assert [facts["name"] for facts in shell("klsa-index", "list", "--json").json] == ["cars"]

    info = shell("klsa-index", "info", "cars").out
    assert "fingerprint" in info
    assert re.search(r"^stop words +short$", info, flags=re.MULTILINE)
    assert shell("klsa-index", "info", "cars", "--json").json["settings"]["k1"] == 1.2

    assert "match" in shell("klsa-index", "verify", "cars").out
    array = next((tmp_path / "index" / "cars").glob("0*/eigenvectors.npy"))
    array.write_bytes(array.read_bytes()[:-1] + b"\x01")
    done = shell("klsa-index", "verify", "cars")
    assert done.code == 1
    assert "eigenvectors.npy" in done.err

    assert shell("klsa-index", "delete-index", "cars", "--yes").code == 0
    assert shell("klsa-index", "info", "cars").code == 1


def test_a_folder_of_the_user_is_not_built_into(shell, cars, tmp_path):
    note = tmp_path / "reports" / "2023" / "may.txt"
    note.parent.mkdir(parents=True)
    note.write_text("Engines overheat.")
    done = shell("klsa-index", "build", "reports", "--name", "reports", "--home", ".")
    assert (done.code, done.out) == (2, "")
    assert "the source reports lies within" in done.err
    assert "--home" in done.err
    assert note.read_text() == "Engines overheat."
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cars.jsonl", "reports"]


@pytest.fixture
def notes(tmp_path):
    """A folder of two texts, a link to another, and what is no text."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.txt", "c.png", "d.png", "e.xls"):
        (folder / name).write_text("Engines overheat.")
    (tmp_path / "other.txt").write_text("Engines stall.")
    (folder / "link.txt").symlink_to(tmp_path / "other.txt")
    return folder


def test_files_that_are_not_read_are_named_in_the_summary(shell, notes):
    words = "4 files: 2 .png, 1 .xls, 1 linked (first: c.png, e.xls, link.txt)"
    words += "; --follow-links reads linked files"
    known = {"count": 4, "kinds": {".png": 2, ".xls": 1, "linked": 1}}
    build = ["klsa-index", "build", notes, "--name", "notes"]
    for command in (build, ["klsa-index", "plan", notes]):
        (line,) = (x for x in shell(*command).out.splitlines() if x.startswith("not read"))
        assert line.split("  ")[-1].strip() == words
        told = shell(*command, "--json").json["unread"]
        assert {key: told[key] for key in known} == known
        assert told["first"][".png"] == "c.png"
    for kind in "fgijkl":
        (notes / f"x.{kind}").write_text("")
    done = shell(*build)
    assert "10 files: 2 .png, 1 .f, 1 .g, 1 .i, 1 .j, 4 of other kinds (first:" in done.out


@pytest.mark.parametrize(("options", "found"), [([], 2), (["--follow-links"], 3)])
def test_links_are_followed_with_an_option(shell, notes, options, found):
    build = ["klsa-index", "build", notes, "--name", "notes", "--json"]
    assert shell(*build, *options).json["counts"]["documents"] == found
    assert shell("klsa-index", "plan", notes, "--json", *options).json["sampled"] == found


def test_files_left_out_by_patterns_are_named_and_stay_so(shell, notes):
    (notes / ".gitignore").write_text("*.txt\n")
    build = ["klsa-index", "build", notes, "--name", "notes", "--exclude", "*.[px]*"]
    line = "5 files and folders: 3 excluded by *.[px]*, 1 ignored by .gitignore, 1 linked (first: c"
    assert line in shell(*build).out
    (notes / "f.xml").write_text("A page.")
    assert "1 unchanged" in shell("klsa-index", "sync", "notes", notes).out
    (notes / "node_modules").mkdir()
    done = shell("klsa-index", "plan", notes, "--exclude", "*.*", "--exclude", "!a.md")
    assert "7 files and folders: 5 excluded by *.*, 1 linked, 1 node_modules folder" in done.out


@pytest.fixture
def ten(tmp_path):
    """Another source, of one document."""
    path = tmp_path / "ten.jsonl"
    path.write_text('{"id": "1", "text": "one engine"}\n')
    return path


def test_another_source_needs_an_option_without_a_terminal(shell, built, ten):
    done = shell("klsa-index", "build", ten, "--name", "cars")
    assert (done.code, done.out) == (1, "")
    assert "cars` has 4 documents of" in done.err
    assert "--replace" in done.err
    assert shell("klsa-index", "build", ten, "--name", "cars", "--replace").code == 0
    assert shell("klsa-index", "build", ten, "--name", "cars").code == 0
    assert shell("klsa-index", "info", "cars", "--json").json["counts"]["documents"] == 1


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 4), ("", 1, 4), ("y", 0, 1)])
def test_a_terminal_asks_before_another_source_replaces(
    shell, cars, ten, monkeypatch, answer, code, left
):
    asked = []
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(
        "click.termui.visible_prompt_func", lambda text: asked.append(text) or answer
    )
    build = ["klsa-index", "build", "--name", "cars", "--json"]
    assert shell(*build, cars).code == 0
    assert shell(*build, cars).code == 0
    assert not asked
    done = shell(*build, ten)
    assert done.code == code
    assert done.err.startswith(f"index/cars contains 4 documents of {cars}, built 2")
    assert f"{ten}?" in done.err + "".join(asked)
    assert shell("klsa-index", "info", "cars", "--json").json["counts"]["documents"] == left


def test_a_terminal_asks_before_a_damaged_index_is_replaced(shell, built, cars, monkeypatch):
    build = ["klsa-index", "build", "--name", "cars", cars]
    for manifest in Path("index/cars").glob("0*/manifest.json"):
        manifest.write_text("")
    assert "--replace" in shell(*build).err
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "y")
    done = shell(*build)
    assert done.code == 0
    assert "this version cannot read" in done.err


@pytest.mark.parametrize("content", ["", '{"id": \n'])
def test_an_index_of_nothing_is_warned_of(shell, tmp_path, content):
    source = tmp_path / "empty.jsonl"
    source.write_text(content)
    done = shell("klsa-index", "build", source, "--name", "it", "--on-error", "skip")
    assert done.code == 0
    assert done.err.startswith(f"warning: {source} has no documents")


def test_a_source_without_texts_is_refused_with_its_fields(shell, tmp_path):
    source = tmp_path / "notes.jsonl"
    source.write_text('{"id": "1", "note": "the engine overheats"}\n')
    done = shell("klsa-index", "build", source, "--name", "it")
    assert (done.code, "--text note" in done.err) == (2, True)
    assert shell("klsa-index", "build", source, "--name", "it", "--text", "note").code == 0


def test_an_index_of_stop_words_is_warned_of(shell, tmp_path):
    source = tmp_path / "stop.jsonl"
    source.write_text('{"id": "1", "text": "to be or not to be"}\n')
    done = shell("klsa-index", "build", source, "--name", "stop")
    assert "only queries of stop words" in done.err
    found = shell("klsa-search", "stop", "not to be", "--json").json["hits"]
    assert [hit["id"] for hit in found] == ["1"]


def test_a_damaged_index_hides_no_other(shell, cars_home, tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(cars_home / "cars", tmp_path / "index" / name)
    point_current(tmp_path / "index" / "a", "000007")
    (tmp_path / "index" / "b" / "000001" / "manifest.json").write_text("{")
    done = shell("klsa-index", "list")
    assert (done.code, done.err) == (0, "")
    first, second, third = done.out.splitlines()[1:]
    assert first.startswith("a ")
    assert "unusable: `index/a/CURRENT` names generation '000007'" in first
    assert "unusable: cannot read `index/b/000001/manifest.json`" in second
    assert third.split()[:2] == ["c", "4"]
    a, b, c = shell("klsa-index", "list", "--json").json
    assert (list(a), list(b)) == (["name", "error"], ["name", "error"])
    assert c["counts"]["documents"] == 4
    for name in ("a", "b"):
        assert shell("klsa-index", "delete-index", name, "--yes").code == 0
    assert shell("klsa-index", "delete-index", "a").code == 1
    assert [facts["name"] for facts in shell("klsa-index", "list", "--json").json] == ["c"]


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, True), ("y\n", 0, False)])
def test_delete_asks(shell, built, tmp_path, monkeypatch, answer, code, left):
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer.strip())
    assert shell("klsa-index", "delete-index", "cars").code == code
    assert (tmp_path / "index" / "cars").exists() is left


def test_analyze_shows_terms_with_positions(shell):
    done = shell("klsa-index", "analyze", "The engines of a car", "--json")
    assert [(t["term"], t["position"]) for t in done.json] == [("engin", 1), ("car", 4)]
    assert shell("klsa-index", "analyze", "the of").out.startswith("no terms")
    kept = shell(
        "klsa-index", "analyze", "the engines", "--stop-words", "none", "--stemmer", "none"
    )
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


def test_fields_are_declared_and_printed(shell, tmp_path):
    source = tmp_path / "cars.csv"
    source.write_text("id,text,year,seen\na,wet roads,1999,2024-03-01\nb,tyres,soon,\n")
    build = ["klsa-index", "build", source, "--name", "cars"]
    done = shell(*build)
    assert re.search(
        r"^filterable +seen \(date, 1 document\); year \(keyword, 2 documents, 2 texts\)$",
        done.out,
        flags=re.MULTILINE,
    )
    done = shell(*build, "--field", "year:number", "--field", "seen:date")
    assert (done.code, done.out) == (1, "")
    assert "cars.csv:3: document 'b': the number field 'year' contains \"soon\"" in done.err
    assert done.err.count("\n") == 1
    done = shell(*build, "--field", "year:number", "--on-error", "skip")
    assert (done.code, "skipped 1 bad record" in done.err) == (0, True)
    info = shell("klsa-index", "info", "cars").out
    assert re.search(r"^fields +year:number$", info, flags=re.MULTILINE)
    told = shell("klsa-index", "info", "cars", "--json").json
    assert told["fields"]["columns"]["year"]["type"] == "number"
    assert told["settings"]["fields"] == ["year:number"]
    assert shell(*build, "--field", "year:numbr").code == 2


def test_searched_fields_are_named_with_weights(shell, tmp_path):
    source, config = tmp_path / "cars.jsonl", tmp_path / "mine.toml"
    source.write_text(
        '{"id": "a", "title": "Fan", "text": "It hums.", "notes": ["belt", "pump"]}\n'
        '{"id": "b", "title": "Belt", "text": "It squeaks."}\n'
    )
    config.write_text("[search]\ntitle = 3\ntext = 1\nnotes = 1\n")
    build = ["klsa-index", "build", source, "--name", "cars", "--json"]
    assert shell(*build, "--config", config).json["settings"]["search"] == "title^3,notes,text"
    done = shell("klsa-search", "cars", "notes:belt", "--highlight")
    assert ("Fan" in done.out, "belt" in done.out, "Belt" in done.out) == (True, True, False)
    done = shell("klsa-search", "cars", "belt", "--ranker", "bm25", "--boosts", "notes^9", "--json")
    assert [hit["id"] for hit in done.json["hits"]] == ["a", "b"]
    assert shell("klsa-index", "refit", "cars", "--search", "title^2,text").code == 0
    assert "search" in shell("klsa-index", "info", "cars").out
    done = shell("klsa-index", "refit", "cars", "--search", "title,note")
    assert (done.code, "no document has a field `note`" in done.err) == (2, True)


def test_fields_that_are_not_columns_are_printed(shell, tmp_path):
    source = tmp_path / "cars.jsonl"
    source.write_text('{"id": "a", "text": "roads", "of": {"a": 1}, "year": 1, "none": null}\n')
    out = shell("klsa-index", "build", source, "--name", "cars").out
    assert re.search(r"^filterable +of\.a .*year", out, flags=re.MULTILINE)
    assert re.search(r"^not filterable +none \(no value\)$", out, flags=re.MULTILINE)


def test_query_settings_are_changed_listed_and_reset(shell, built):
    changed = shell("klsa-index", "settings", "cars", "--alpha", "0.5", "--page-title", "Cars")
    assert changed.out == "cars: changed alpha, page_title\n"
    for command in ("settings", "info"):
        told = shell("klsa-index", command, "cars", "--json").json
        told = told if command == "settings" else told["settings"]
        assert (told["alpha"], told["page_title"], told["k1"]) == (0.5, "Cars", 1.2)
        assert "0.5" in shell("klsa-index", command, "cars").out
    (listed,) = shell("klsa-index", "list", "--json").json
    assert listed["settings"] == told
    refused = shell("klsa-index", "settings", "cars", "--ranker", "lsi")
    assert (refused.code, "klsa-index refit" in refused.err) == (2, True)
    assert shell("klsa-index", "settings", "cars", "--alpha", "1", "--reset").code == 2
    assert (
        shell("klsa-index", "settings", "cars", "--reset").out
        == "cars: reset to the settings of the build\n"
    )
    assert shell("klsa-index", "settings", "cars", "--json").json["alpha"] == 0.7
    assert shell("klsa-index", "refit", "cars", "--k1", "2").code == 0
    assert shell("klsa-index", "settings", "cars", "--json").json["k1"] == 2
