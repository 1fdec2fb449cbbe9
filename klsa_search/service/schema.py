"""What the OpenAPI schema says of routes alike: that they take a key, and not too many requests."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from klsa_search.service import anserini
from klsa_search.service.access import needs_key
from klsa_search.service.door import ALWAYS
from klsa_search.service.failures import documented

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "a key, made by `klsa-keys add`; not needed where the service has no keys",
}


def install(app: FastAPI) -> None:
    """Have each operation name the scheme, and what it answers before anything is looked at."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schema["components"]["securitySchemes"] = {"key": _SCHEME}
            for path, methods in schema["paths"].items():
                for operation in methods.values():
                    if path.startswith(anserini.PREFIX):  # which tells as 400 what others do as 422
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
    for status, told in documented(*statuses).items():
        operation["responses"].setdefault(
            str(status),
            {
                "description": told["description"],
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/FailureAnswer"}}
                },
            },
        )
