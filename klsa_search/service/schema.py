"""What the OpenAPI schema says of all routes alike: keys and refusals."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from klsa_search.service.endpoints import anserini
from klsa_search.service.messages.failures import documented
from klsa_search.service.middleware.access import needs_key
from klsa_search.service.middleware.load_shedder import ALWAYS

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "API key, as printed by `klsa-keys add`; not needed if the service has no keys",
}
_JSON = "application/json"
_FAILURE = "#/components/schemas/FailureAnswer"


def install(app: FastAPI) -> None:
    """Have each operation name the scheme, and what it answers before anything is looked at.

    Cost: 10 ms, when the schema is first asked for.
    """
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schema["components"]["securitySchemes"] = {"key": _SCHEME}
            for path, methods in schema["paths"].items():
                for operation in methods.values():
                    if path.startswith(anserini.PREFIX):  # which returns 400 instead of 422
                        operation["responses"].pop("422", None)
                    if needs_key(path):
                        operation["security"] = [{}, {"key": []}]
                        _add(operation, 401, 403)
                    if path not in ALWAYS:
                        _add(operation, 429)
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
