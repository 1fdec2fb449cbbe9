"""Keyword arguments match the settings, and type checkers refuse all others."""

import inspect
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import get_type_hints

import pytest

from klsa_search import IndexSettings, SearchParameters
from klsa_search.core.build_settings import Tokenizer
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import FieldWeights
from klsa_search.core.parameters import ParsingSettings, RankingParameters, RankingSettings
from tests.conftest import ROOT
from tests.support.processes import run

CALLS = """\
import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.indexing import build_like, plan, refit

bold: klsa.SearchParameters = {"alpha": 0.9, "ranker": "klsa"}
options: klsa.SearchOptions = {"filter": "year >= 2020", "dimensions": 10, "z": 5}
settings: klsa.IndexSettings = {"k1": 2.0, "extra_stop_words": ["wing"]}
index = klsa.build("reports.jsonl", name="reports", memory="4GiB", **settings)
index.search("x", alpha=1, ranker="bm25", operators=False, z=5)
index.search("x", explain=True, **bold).hits[0].id.upper()
index.search_many(["x"], threads=2, **options)[0].total + 1
index.rank("x", 5, **bold)[0].tolist()
index.add("more.csv", on_error="skip", columns={"id": "ticket"})
index.parameters(gamma=0.5, exact=None).gamma + 1
refit("index/reports", alpha=0.5)

index.search("x", alpha="high")  # wrong
index.search("x", rankr="bm25")  # wrong
index.search("x", k1=2.0)  # wrong
index.search_many(["x"], filtre="year >= 2020")  # wrong
index.search_many(["x"], z="5")  # wrong
index.rank("x", alpha="high")  # wrong
index.rank_many(["x"], rankr="bm25")  # wrong
index.scores("x", alpha="high")  # wrong
index.explain("x", "leak", rankr="bm25")  # wrong
index.parameters(alpha="high")  # wrong
index.add("more.csv", colums={"id": "ticket"})  # wrong
klsa.build("reports.jsonl", name="reports", k1="2")  # wrong
klsa.build("reports.jsonl", name="reports", lang="german")  # wrong
klsa.build("reports.jsonl", name="reports", data=3)  # wrong
plan("reports.jsonl", stopwords="long")  # wrong
refit(index, alpha="high")  # wrong
build_like(index, home="index", name="other", k_1=2.0)  # wrong
refit("index/reports", alfa=0.5)  # wrong
open_collection("reports.jsonl", columns="id")  # wrong
"""


def mypy(file):
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)]
    done = run(*command, cwd=ROOT)
    found = re.findall(r"^(.+?):(\d+): error:", done.stdout, re.M)
    assert found, done.stdout + done.stderr
    return [(name, int(line)) for name, line in found]


def pyright(file):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, str(file)]
    done = run(*command, cwd=ROOT)
    told = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (each["file"], each["range"]["start"]["line"] + 1)
        for each in told
        if each["severity"] == "error"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_checker_finds_every_wrong_call_and_no_other(check, tmp_path):
    file = tmp_path / "calls.py"
    file.write_text(CALLS)
    found = check(file)
    assert {name.rpartition("/")[2] for name, _ in found} == {"calls.py"}
    wrong = [n for n, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({line for _, line in found}) == wrong


def declared(*groups, or_none=False):
    """Type of each setting, as calls may have it: a list is as good as a tuple."""
    held = {
        name: field.annotation for group in groups for name, field in group.model_fields.items()
    }
    taken = {
        name: hint | list[str] if hint == tuple[str, ...] else hint for name, hint in held.items()
    }
    return {name: hint | None if or_none else hint for name, hint in taken.items()}


def named(function, *but):
    """Type of each parameter that is given by name alone."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return {
        each.name: hints[each.name]
        for each in parameters
        if each.kind is each.KEYWORD_ONLY and each.name not in but
    }


def test_names_and_types_are_those_of_the_settings():
    parameters = declared(ParsingSettings, RankingSettings, or_none=True)
    weighted = {"boosts": FieldWeights}  # is kept as text
    assert get_type_hints(SearchParameters) == parameters | {"boosts": FieldWeights | None}, (
        "name the setting in `SearchParameters` of core/parameters.py"
    )
    written = RankingParameters.__base__.model_fields
    assert {name: field.annotation for name, field in written.items()} == parameters, (
        "name the setting in `RankingParameters` of core/parameters.py"
    )
    also = weighted | {
        "language": str | Sequence[str],  # is kept as text
        "search": FieldWeights,
        "tokenizer": str | Tokenizer | None,  # is kept as its name
        "split": Mapping[str, str] | tuple[str, ...] | list[str],  # as NAME=SEPARATOR
        "html": tuple[str, ...] | list[str] | None,
        "passages": str | int,  # is kept as text
    }
    assert get_type_hints(IndexSettings) == declared(Settings) | also, (
        "name the setting in `IndexSettings` of core/config.py"
    )
