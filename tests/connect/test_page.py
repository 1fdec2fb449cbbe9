"""Examples of docs/guides/integrations.md print what they show, if their packages are installed."""

import re
import warnings
from importlib.util import find_spec

import pytest

from tests.conftest import ROOT
from tests.support.shown import wrong_examples

pytestmark = pytest.mark.external

PAGE = ROOT / "docs" / "guides" / "integrations.md"
FIRST, *SECTIONS = re.split(r"(?m)^## ", PAGE.read_text("utf-8"))
NEEDED = {
    "MCP": "mcp_types",
    "PyTerrier": "pyterrier",
    "LangChain": "langchain_core",
    "Haystack": "haystack",
    "Data frames": "pandas",
    "ir_datasets": "ir_datasets",
    "LlamaIndex": "llama_index",
    "BEIR": "beir",
    "MTEB": "mteb",
}


def titled(section):
    return section.partition("\n")[0]


def test_every_section_is_run_where_it_can_be():
    assert [titled(section) for section in SECTIONS] == list(NEEDED)


@pytest.mark.parametrize("section", [pytest.param(each, id=titled(each)) for each in SECTIONS])
def test_its_examples_give_what_it_says(section, tmp_path, monkeypatch):
    if find_spec(NEEDED[titled(section)]) is None:
        pytest.skip(f"{NEEDED[titled(section)]} is not installed: make test-connect")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert wrong_examples(FIRST + section, titled(section)) == ""


pytest.importorskip("mcp_types", reason="needs version 2 of mcp: pip install 'klsa-search[mcp]'")


def test_its_steps_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guides" / "assistants.md").read_text("utf-8")
    assert wrong_examples(page, "assistants.md") == ""
