"""klsa.d.ts declares what klsa.js and the HTTP API have."""

import re
from dataclasses import fields, is_dataclass

import pytest

from klsa_search.core.service_reports import (
    Analytics,
    SearchFigures,
    SynonymCandidate,
    SynonymProposal,
)
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.service.schemas import documents, index_answers, search_answers
from klsa_search.service.schemas.search_requests import SearchRequest
from tests.conftest import ROOT

PAGE = ROOT / "klsa_search" / "service" / "page"
CODE, TYPES = ((PAGE / name).read_text("utf-8") for name in ("klsa.js", "klsa.d.ts"))


def members(text, kind, name):
    """Names in the body of a class or an interface, indented by two spaces."""
    found = re.search(rf"^export {kind} {name}\b[^\n]*{{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"^  (?:readonly |async )?(\w+)\??(?=[:(<])", found[1], re.MULTILINE))


@pytest.mark.parametrize(
    ("interface", "model", "without"),
    [
        ("SearchOptions", SearchRequest, {"q", "index"}),
        ("SearchAnswer", search_answers.SearchAnswer, set()),
        ("Hit", search_answers.HitAnswer, set()),
        ("Facet", search_answers.FacetAnswer, set()),
        ("Interpretation", QueryInterpretation, set()),
        ("Suggestion", Suggestion, set()),
        ("StoredDocument", documents.DocumentAnswer, set()),
        ("WriteAnswer", documents.WriteAnswer, set()),
        ("SearchFigures", SearchFigures, set()),
        ("Analytics", Analytics, set()),
        ("SynonymProposal", SynonymProposal, set()),
        ("SynonymCandidate", SynonymCandidate, set()),
        ("IndexSummary", index_answers.IndexSummary, set()),
        ("IndexDetails", index_answers.IndexDetails, set(index_answers.IndexSummary.model_fields)),
    ],
)
def test_its_interfaces_have_the_names_of_the_api(interface, model, without):
    names = {field.name for field in fields(model)} if is_dataclass(model) else model.model_fields
    assert members(TYPES, "interface", interface) == set(names) - without


@pytest.mark.parametrize("name", ["Client", "Index"])
def test_its_classes_have_the_methods_of_the_code(name):
    methods = members(CODE, "class", name)
    assert members(TYPES, "class", name) - {"name"} == methods
    assert {"constructor", "search" if name == "Index" else "multiSearch"} <= methods
