"""What the OpenAPI schema says of all routes alike: keys, refusals, and an example of everything.

The examples are what a service answered, `examples.json`: see tools/openapi_examples.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI

from klsa_search.service.endpoints import anserini
from klsa_search.service.messages.failures import documented
from klsa_search.service.middleware.access import needs_key
from klsa_search.service.middleware.body_limit import LINES
from klsa_search.service.middleware.load_shedder import ALWAYS

EXAMPLES: Final = Path(__file__).parent / "examples.json"
"""By route, requests and their answers; by status and code, failures."""

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "API key, as printed by `klsa-keys add`; not needed if the service has no keys",
}
_JSON = "application/json"
_FAILURE = "#/components/schemas/FailureAnswer"
_ONLY: Final = {
    "document_not_found": ("{id}", "{docid}"),
    "term_not_found": ("{term}",),
}
"""Failures of the paths with one of these."""
_OF_WRITES: Final = frozenset(("bad_document", "too_many_writes", "writing_refused"))
_NOT_OF_WRITES: Final = frozenset(("document_not_found", "timed_out"))


def install(app: FastAPI) -> None:
    """Have each operation name the scheme, what it answers before anything is looked at, examples.

    Cost: 10 ms, when the schema is first asked for.
    """
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
            schema["components"]["securitySchemes"] = {"key": _SCHEME}
            for path, methods in schema["paths"].items():
                for method, operation in methods.items():
                    if path.startswith(anserini.PREFIX):  # which returns 400 instead of 422
                        operation["responses"].pop("422", None)
                    if needs_key(path):
                        operation["security"] = [{}, {"key": []}]
                        _add(operation, 401, 403)
                    if path not in ALWAYS:
                        _add(operation, 429)
                    own = examples["operations"][f"{method.upper()} {path}"]
                    _show(operation, own)
                    _show_failures(operation, method, path, examples["failures"])
            for unused in ("HTTPValidationError", "ValidationError"):  # of FastAPI's own 422
                schema["components"]["schemas"].pop(unused, None)
        return made()

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI asks for it


def _add(operation: dict[str, Any], *statuses: int) -> None:
    for status, shown in documented(*statuses).items():
        operation["responses"].setdefault(
            str(status),
            {
                "description": shown["description"],
                "content": {_JSON: {"schema": {"$ref": _FAILURE}}},
            },
        )


def _show(operation: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Put the request of an example, and its answers, into an operation."""
    given = own.get("parameters", {})
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    bodies = operation.get("requestBody", {}).get("content", {})
    for kind, name in ((_JSON, "body"), (LINES, "lines")):
        if kind in bodies:
            bodies[kind]["example"] = own[name] if kind == _JSON else _in_lines(own[name])
    for status, answer in own["answers"].items():
        content = operation["responses"]["200" if status == LINES else status]["content"]
        kind = status if status == LINES else next(iter(content))
        content[kind]["example"] = _in_lines(answer) if kind == LINES else answer


def _in_lines(values: list[Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def _show_failures(
    operation: dict[str, Any], method: str, path: str, failures: Mapping[str, Mapping[str, Any]]
) -> None:
    """Put examples of the failures that an operation documents into it."""
    writes = method in ("put", "delete") or (
        method == "post" and ("/documents" in path or path.endswith("/refit"))
    )
    for status, response in operation["responses"].items():
        content = response["content"].get(_JSON, {})
        if status == "200" or "example" in content:
            continue
        shape = content["schema"]["$ref"]
        own = shape != _FAILURE  # of Anserini, whose 400 is our 422
        kinds = failures["422" if own and status == "400" else status]
        content["examples"] = {
            code: {"value": {"error": shown["error"]["message"]} if own else shown}
            for code, shown in kinds.items()
            if any(part in path for part in _ONLY.get(code, ("",)))
            and code not in (_NOT_OF_WRITES if writes else _OF_WRITES)
        }
