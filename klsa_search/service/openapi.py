"""Parts of the OpenAPI schema that all routes share: API keys and error responses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from pydantic_core import to_json

from klsa_search.service.dependencies import Route
from klsa_search.service.middleware.auth import API_KEY_HEADER, needs_key
from klsa_search.service.middleware.clients import ALWAYS
from klsa_search.service.routes import documents
from klsa_search.service.schemas.base import ROW, documented_parameters
from klsa_search.service.schemas.errors import documented

LISTS: Final = (
    'In a body, a list of one text may be the text alone, as in `"facets": "brand"`. In a URL, '
    "lists are separated by commas, or the parameter is repeated."
)
"""How lists are written, which the types of parameters do not say."""

_DESCRIPTION = "API key, as printed by `klsa-keys add`; not needed if the service has no keys"
_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": _DESCRIPTION},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "API key as the password, with any user name",
    },
    "header": {
        "type": "apiKey",
        "in": "header",
        "name": API_KEY_HEADER,
        "description": _DESCRIPTION,
    },
}
_PATH: Final = "/openapi.json"
_FAILURE = {"application/json": {"schema": {"$ref": "#/components/schemas/FailureAnswer"}}}


def install(app: FastAPI) -> None:
    """Add the security scheme and the common error responses to each operation of the schema.

    Operations get the names of their functions. Cost: 2 s when the schema is first requested, in a
    thread.
    """
    generate = app.openapi
    routes = {
        (route.path_format, method.lower()): route
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            for route in routes.values():
                if route.url_model is not None:
                    parameters = documented_parameters(route.url_model)
                    route.openapi_extra = (route.openapi_extra or {}) | parameters
            schema = generate()
            schema["info"]["description"] = LISTS
            schema["components"]["securitySchemes"] = _SCHEMES
            schema["components"]["schemas"] |= documents.BODIES
            for model in schema["components"]["schemas"].values():
                # Generators of clients require names with a default, and send it.
                for about in model.get("properties", {}).values():
                    about.pop("default", None)
                _describe_fields(model)
            for path, methods in schema["paths"].items():
                for method, operation in methods.items():
                    operation["operationId"] = routes[path, method].name
                    operation["responses"].pop("422", None)  # FastAPI's own
                    if needs_key(path):
                        operation["security"] = [{}, {"key": []}, {"basic": []}, {"header": []}]
                    failures = documented(*_failures(path, method, operation))
                    responses = {
                        str(status): {"description": shown["description"], "content": _FAILURE}
                        for status, shown in failures.items()
                    } | operation["responses"]
                    operation["responses"] = dict(sorted(responses.items()))
            for unused in ("HTTPValidationError", "ValidationError"):  # of FastAPI's own 422
                schema["components"]["schemas"].pop(unused, None)
        return generate()

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it
    making = Lock()

    @lru_cache(8)
    def content(root_path: str) -> bytes:
        schema = openapi()
        return to_json(schema | {"servers": [{"url": root_path}]} if root_path else schema)

    def document(request: Request) -> Response:
        with making:  # once, however many request it
            json = content(request.scope.get("root_path", "").rstrip("/"))
        return Response(json, media_type="application/json")

    # FastAPI's function makes the schema, and encodes it for each request, in the event loop.
    app.router.routes[:] = [route for route in app.routes if getattr(route, "path", "") != _PATH]
    app.add_route(_PATH, document, include_in_schema=False)


def _describe_fields(model: dict[str, Any]) -> None:
    """Move the descriptions of fields in the docstring of a dataclass to the fields.

    Its examples are of Python, and left out.
    """
    properties = model.get("properties", {})
    prose: list[str] = []
    names: list[str] = []
    for line in model.get("description", "").partition("\n>>>")[0].splitlines():
        row = ROW.fullmatch(line)
        if row is not None and properties.keys() >= set(row[1].split(", ")):
            names, line = row[1].split(", "), row[2]
        elif not (names and line.startswith(" ")):
            names = []
            prose.append(line)
        for name in names:
            before = properties[name].get("description", "")
            about = re.sub(r"\bNone\b", "null", line.strip())
            properties[name]["description"] = f"{before} {about}".lstrip()
    if "description" in model:
        model["description"] = "\n".join(prose).strip()


def _failures(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[int]:
    """Yield the statuses of the common errors of an operation."""
    if needs_key(path):
        yield from (401, 403)
    if path in ALWAYS:
        return
    yield 429
    yield from (500, 503)
    has_body = "requestBody" in operation
    if has_body or operation.get("parameters"):
        yield from (404, 422)
    if has_body or method in ("put", "delete"):
        yield from (400, 413)
    if has_body:
        yield 415
