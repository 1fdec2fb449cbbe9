"""The reference pages contain everything that the code declares."""

import re

import pytest

from klsa_search import errors
from klsa_search.core.config import Settings
from klsa_search.errors import KlsaError
from klsa_search.service.schemas.errors import ERROR_CODES
from klsa_search.service.schemas.search_requests import SearchRequest
from tests.conftest import ROOT
from tests.project.test_packaging import PROJECT
from tools.reference_page import COMMANDS, FOLDER, pages

PAGES = pages()
ROW = re.compile(r"^\| (?:(\d{3}) \| )?`(\w+)` \|", re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_as_generated(path):
    wanted = PAGES[path]
    assert path.read_text(encoding="utf-8") == wanted, "run: python -m tools.reference_page"


def test_nothing_is_left_out():
    paths = [*PAGES, FOLDER / "service-settings.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert COMMANDS.keys() == PROJECT["scripts"].keys()
    named = {
        option
        for command in COMMANDS.values()
        for each in getattr(command, "commands", {"": command}).values()
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }
    assert len(named) > 80
    assert not [option for option in named if f"`{option}`" not in text]
    parameters = {*Settings.model_fields, *SearchRequest.model_fields}
    assert not [name for name in parameters if f"`{name}`" not in text]


def test_every_error_code_has_its_status_cause_and_fix():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, KlsaError)} - {KlsaError.code}
    page = (FOLDER / "error-codes.md").read_text(encoding="utf-8")
    documented = {(status and int(status), code) for status, code in ROW.findall(page)}
    over_http = {(one.status, code) for code, one in ERROR_CODES.items()}
    assert {row for row in documented if row[0]} == over_http
    assert {code for _, code in documented} == codes | ERROR_CODES.keys()
    assert str(ROOT) not in page
