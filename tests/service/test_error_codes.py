"""Every error has a status, and a row in the documentation."""

import ast
import re
from pathlib import Path

import klsa_search
from klsa_search.errors import KlsaError
from klsa_search.service.schemas.errors import STATUSES, error_response
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "error-codes.md"

NOT_OVER_HTTP = {"error", "bad_argument", "embedder_failed", "fetch_failed"} | {
    "replay_failed",
    "service_failed",
}
"""Codes of commands, estimators, clients, and of embedders, without which a search goes on."""


def kinds(kind=KlsaError):
    yield kind
    for each in kind.__subclasses__():
        if each.__module__.startswith("klsa_search."):
            yield from kinds(each)


def test_the_page_has_a_row_for_each_code_in_the_order_of_statuses():
    rows = re.findall(
        r"^\| (\d+) \| `(\w+)` \| .* \| .+ \| .+ \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [(code, int(status)) for status, code in rows] == list(STATUSES.items())


def test_every_error_has_a_declared_code():
    codes = {kind.code for kind in kinds()}
    assert codes - NOT_OVER_HTTP <= STATUSES.keys()
    assert not NOT_OVER_HTTP & STATUSES.keys()
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{code}`" in page for code in NOT_OVER_HTTP - {KlsaError.code})


def test_the_page_names_the_class_of_each_code():
    rows = re.findall(r"`(\w+)` \| `(\w+)` \|", PAGE.read_text("utf-8"))
    public = (kind for kind in kinds() if kind.__module__ == KlsaError.__module__)
    assert dict(rows) == {kind.code: kind.__name__ for kind in public if kind is not KlsaError}


def test_codes_that_the_service_names_itself_are_declared():
    named = set()
    for file in (Path(klsa_search.__file__).parent / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "")
            if called in ("Refusal", "failure_answer", "_answer") and node.args:
                named |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert named
    assert named <= STATUSES.keys()


def test_the_status_is_that_of_the_code():
    for kind in kinds():
        error = kind.__new__(kind)
        KlsaError.__init__(error, "said", field="named")
        vars(error).update(sent=True, scope="write", leaving=False, after=1)
        declared = STATUSES.get(kind.code, 500)
        assert error_response(error).status_code == declared, kind
