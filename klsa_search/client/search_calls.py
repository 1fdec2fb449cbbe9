"""Calls that search: one index or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.client.index_calls import without_arrays
from klsa_search.client.protocol import Call, path_part
from klsa_search.client.results import FederatedHit, FederatedResults
from klsa_search.errors import QueryError
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.pages.options import Query
from klsa_search.search.pages.results import Hit, SearchResults

_RESULTS: Final = TypeAdapter(SearchResults)
_HIT: Final = TypeAdapter(Hit)
_EXPLANATION: Final = TypeAdapter(Explanation)


def search_call(index: str, query: Query) -> Call[SearchResults]:
    """Return the call of a search."""
    return Call("POST", "/search", results_of, search_body(index, query))


def search_body(index: str | None, query: Query) -> dict[str, Any]:
    """Return the parameters of a search as JSON; QueryError for those that are not JSON."""
    options = {
        name: value
        for name in query.model_fields_set - {"query", "k"}
        if (value := getattr(query, name)) is not None
    }
    for name in ("mask", "count_tokens"):
        if name in options:
            raise QueryError(
                f"{name} cannot be sent to a service; leave it out, or search the index in Python",
                field=name,
            )
    return {"index": index, "q": query.query, "k": query.k, **options, **_vector(options)}


def _vector(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the vector of a search as a parameter."""
    vector = options.get("vector")
    return {} if vector is None else {"vector": without_arrays(vector)}


def results_of(answer: Any) -> SearchResults:
    """Return the results in an answer of a search."""
    for facet in answer.get("facets", {}).values():
        facet["values"] = [(entry["value"], entry["count"]) for entry in facet["values"]]
    return _RESULTS.validate_python(answer)


def explain_call(index: str, query: str, id_: str, options: Mapping[str, Any]) -> Call[Explanation]:
    """Return the call of an explanation."""
    path = f"/indexes/{path_part(index)}/explain/{path_part(id_)}"
    parameters = {name: value for name, value in options.items() if value is not None}
    return Call("POST", path, explanation_of, {"q": query, **parameters, **_vector(options)})


def explanation_of(answer: Any) -> Explanation:
    """Return the explanation in an answer."""
    return _EXPLANATION.validate_python(answer["explanation"])


def multi_search_call(queries: Iterable[Mapping[str, Any]]) -> Call[list[SearchResults]]:
    """Return the call of several searches."""
    bodies = [_body(query) for query in queries]
    return Call(
        "POST",
        "/multi-search",
        lambda answer: [results_of(result) for result in answer["results"]],
        {"queries": bodies},
    )


def federated_search_call(
    queries: Iterable[Mapping[str, Any]], limit: int, offset: int
) -> Call[FederatedResults]:
    """Return the call of several searches whose hits are merged."""
    bodies = [
        {name: value for name, value in _body(query).items() if name != "k"} for query in queries
    ]
    body = {"queries": bodies, "federation": {"limit": limit, "offset": offset}}
    return Call("POST", "/multi-search", _merged, body)


def _merged(answer: Any) -> FederatedResults:
    hits = tuple(
        FederatedHit(
            hit=_HIT.validate_python(
                {"title": "", "snippet": "", "metadata": {}}
                | {name: value for name, value in hit.items() if name != "federation"}
            ),
            **hit["federation"],
        )
        for hit in answer["hits"]
    )
    results = tuple(results_of(result) for result in answer["results"])
    return FederatedResults(hits, answer["total"], answer["offset"], results)


def _body(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of one of several searches; parameters of the service alone stay as are."""
    options = dict(parameters)
    index, text = options.pop("index", None), options.pop("q", "")
    extra = {name: options.pop(name) for name in options.keys() - Query.model_fields.keys()}
    return search_body(index, Query(text, **options)) | extra
