"""Table of endpoints: each operation of the service, with a valid request for the test index.

The requests are the examples of the OpenAPI schema (`tools.openapi_examples`), with the names and
documents of `tests/service/conftest.py`.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tools.openapi_examples import REQUESTS

NAMES = {
    "about": "year", "coolant": "wing", "grip": "3", "heat": "a/b c?%", "leak": "1",
    "reports-live": "live", "tyre": "1",
}  # fmt: skip
"""Names in the examples, and those in the tests' index."""

CHOOSING = {"GET /search", "POST /search", "GET /documents/{id}", "GET /suggest", "GET /jobs"}
"""Operations with a parameter that names the index."""


@dataclass(frozen=True)
class Endpoint:
    """An operation: `path` as in the schema, `example` with parameters and body."""

    method: str
    path: str
    example: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def names_index(self) -> bool:
        """Whether a request names the index that it is about."""
        of_one = self.path.startswith("/indexes/{name}")
        return of_one or str(self) in CHOOSING or self.path == "/multi-search"

    def request(self, index: str) -> dict[str, Any]:
        """Return method, URL and content of a request about an index."""
        query = _translated(self.example.get("parameters", {}), index)
        body = _translated(self.example.get("body"), index)
        if str(self) in CHOOSING:
            (query if self.method == "GET" else body)["index"] = index
        for search in body["queries"] if self.path == "/multi-search" else ():
            search["index"] = index
        path = self.path
        for name in [name for name in query if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(str(query.pop(name)), safe=""))
        asked = {"method": self.method, "url": f"{path}?{urlencode(query)}" if query else path}
        if body is None and "lines" in self.example:
            lines = "\n".join(map(json.dumps, self.example["lines"]))
            asked |= {"content": lines, "headers": {"Content-Type": "application/x-ndjson"}}
        if body is not None:
            asked |= {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        return asked


def _translated(value: Any, index: str) -> Any:
    if isinstance(value, dict):
        return {NAMES.get(name, name): _translated(each, index) for name, each in value.items()}
    if isinstance(value, list):
        return [_translated(each, index) for each in value]
    return (
        index
        if value == "reports"
        else NAMES.get(value, value)
        if isinstance(value, str)
        else value
    )


ENDPOINTS = tuple(Endpoint(*route.split(), example) for route, example in REQUESTS.items())
