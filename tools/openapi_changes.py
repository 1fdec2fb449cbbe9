"""Incompatible changes of the HTTP API since the last release.

    python -m tools.openapi_changes             list them; exit with 1 if one is not announced
    python -m tools.openapi_changes --released  keep the present schema as that of the release

A change is incompatible if a path, a parameter or a field of an answer is gone, if a request
accepts less than before, or if an answer may contain something else. It is announced if a section
`### Breaking` above the last release in CHANGELOG.md names the path, parameter or field in
backticks.
"""

import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from klsa_search.service.app import create_app
from klsa_search.service.catalog import Catalog
from tests.conftest import ROOT

RELEASED = ROOT / "tests" / "service" / "released_openapi.json"
WORDS = {"description", "example", "examples", "title", "summary", "tags", "operationId"}
METHODS = ("get", "put", "post", "delete")
LIMITS = dict.fromkeys(("minimum", "minLength", "minItems"), 1) | dict.fromkeys(
    ("maximum", "maxLength", "maxItems"), -1
)


def present():
    """The schema that the service has now."""
    with tempfile.TemporaryDirectory() as home, Catalog(Path(home)) as catalog:
        return json.loads(json.dumps(create_app(catalog).openapi()))


def without_words(part, names=False):
    """A schema without what only people read; `names` if its keys are names of fields."""
    if isinstance(part, list):
        return [without_words(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = part if names else {key: part[key] for key in part.keys() - WORDS}
    return {key: without_words(kept[key], key == "properties") for key in sorted(kept)}


class Node:
    """What a value may be by all alternatives of a schema: its types, limits, choices, fields."""

    def __init__(self, schema, part):
        self.types, self.fields, self.required, self.limits = set(), {}, set(), {}
        self.choices = set()
        self._schema = schema
        self._add(part)

    def _add(self, part):
        if "$ref" in part:
            name = part["$ref"].rpartition("/")[2]
            return self._add(self._schema["components"]["schemas"][name])
        alternatives = part.get("anyOf") or part.get("oneOf")
        for each in alternatives or ():
            self._add(each)
        if alternatives:
            return None
        kind = part.get("type", "any")
        self.types |= {kind, "integer"} if kind == "number" else {kind}
        if kind != "null":
            chosen = part.get("enum", [part["const"]] if "const" in part else ["any value"])
            self.choices |= set(map(str, chosen))
        self.limits |= {name: part[name] for name in LIMITS if name in part}
        self.fields |= part.get("properties", {})
        self.required |= set(part.get("required", ()))
        if "items" in part:
            self.fields["[]"] = part["items"]
        if isinstance(part.get("additionalProperties"), dict):
            self.fields["*"] = part["additionalProperties"]
        return None


def values(schema):
    """All requests and answers of an API: their names, and their parts of the schema."""
    for path, ways in schema["paths"].items():
        for method in ways.keys() & set(METHODS):
            operation, name = ways[method], f"{method.upper()} {path}"
            asked = operation.get("parameters", ())
            content = operation.get("requestBody", {}).get("content", {})
            answers = operation["responses"].items()
            yield (
                (name,),
                {
                    "type": "object",
                    "properties": {each["name"]: each["schema"] for each in asked}
                    | {kind: body.get("schema", {}) for kind, body in content.items()},
                    "required": [each["name"] for each in asked if each.get("required")],
                },
            )
            for status, answer in answers:
                for body in answer.get("content", {}).values() if status < "300" else ():
                    yield (name, status), body.get("schema", {})


def compared(old, new, name, parts, answer, seen=()):
    """Yield the incompatible changes of a value: its name and what has changed."""
    before, after = Node(old, parts[0]), Node(new, parts[1])
    wider, narrower = (before, after) if not answer else (after, before)
    lost = wider.types - narrower.types
    if lost and "any" not in narrower.types:
        yield name, f"{'may be' if answer else 'is not accepted as'} {', '.join(sorted(lost))}"
    lost = wider.choices - narrower.choices
    if lost and "any value" not in narrower.choices:
        yield name, f"{'may be' if answer else 'does not accept'} {', '.join(sorted(lost))}"
    if not answer:
        for limit, sign in LIMITS.items():
            if limit in after.limits and (
                limit not in before.limits
                or sign * after.limits[limit] > sign * before.limits[limit]
            ):
                yield name, f"has {limit} {after.limits[limit]}"
    needed = before.required - after.required if answer else after.required - before.required
    for field in sorted(needed & after.fields.keys()):
        yield (*name, field), "may be absent" if answer else "is required"
    for field, part in sorted(before.fields.items()):
        if field not in after.fields:
            yield (*name, field), "is gone"
        elif (pair := (json.dumps(part), json.dumps(after.fields[field]))) not in seen:
            both = (part, after.fields[field])
            yield from compared(old, new, (*name, field), both, answer, (*seen, pair))


def changes(old, new):
    """All incompatible changes, as pairs of the name of a value and what has changed."""
    before, after = dict(values(old)), dict(values(new))
    for name, part in before.items():
        if name in after:
            yield from compared(old, new, name, (part, after[name]), len(name) > 1)
        elif name[:1] in after or len(name) == 1:
            yield name, "is gone"


def announced():
    """Names in backticks in the sections `### Breaking` above that of the last release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text("utf-8").partition(f"\n## {version} ")[0]
    sections = re.findall(r"^### Breaking\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    return {word for part in sections for span in re.findall("`([^`]+)`", part)
            for word in (span, *re.split(r"[^\w{}/.-]+", span))}  # fmt: skip


def is_announced(name, names):
    """Whether the path, the operation, or a field that the changed value belongs to is named."""
    path = name[0].partition(" ")[2]
    return bool(names & {*name, path})


def main():
    """Compare, or keep."""
    if sys.argv[1:] == ["--released"]:
        RELEASED.write_text(json.dumps(without_words(present()), separators=(",", ":")) + "\n")
        return
    names, missing = announced(), False
    for name, what in changes(json.loads(RELEASED.read_text()), without_words(present())):
        known = is_announced(name, names)
        missing |= not known
        print(f"{' '.join(name)} {what}{'' if known else ': announce it under ### Breaking'}")
    sys.exit(missing)


if __name__ == "__main__":
    main()
