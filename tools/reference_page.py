"""Writes docs/reference/commands.md from what is declared: python -m tools.reference_page."""

import tempfile
from pathlib import Path

import click

from klsa_search.cli.evaluate import klsa_eval
from klsa_search.cli.index import klsa_index
from klsa_search.cli.keys import klsa_keys
from klsa_search.cli.mcp import klsa_mcp
from klsa_search.cli.search import klsa_search
from klsa_search.cli.serve import serve
from klsa_search.config import LanguageSettings, SearchSettings, Settings
from klsa_search.service import Catalog, create_app
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "commands.md"
COMMANDS = {
    "klsa-index": klsa_index,
    "klsa-search": klsa_search,
    "klsa-serve": serve,
    "klsa-keys": klsa_keys,
    "klsa-eval": klsa_eval,
    "klsa-mcp": klsa_mcp,
}
ASKED = {*SearchSettings.model_fields, *LanguageSettings.model_fields}


def page():
    """All commands, settings and endpoints, one row each."""
    parts = [
        "# Reference",
        "Every command, setting and endpoint. It is made of what the code declares, by "
        "`python -m tools.reference_page`; the other pages say what it is good for.",
        "## Commands",
        "`--help` of each says the same. Options that are settings of an index stand below.",
        *(part for name, command in COMMANDS.items() for part in of_command(name, command)),
        "## Settings of an index",
        "Given as options of `klsa-index build` and `estimate`, in a TOML file (`--config`), and "
        "to `klsa_search.build`. Those of a query are also options of `klsa-search`, parameters "
        "of a search over HTTP and arguments of `Index.search`.",
        of_settings(),
        "Those of the service are [on the page about it](../guides/run-the-service.md#settings).",
        "## Endpoints",
        "`/openapi.json`, and `/docs` as a page, also have the types, the limits, every failure "
        "and an example of each.",
        *of_endpoints(),
    ]
    return "\n\n".join(parts) + "\n"


def of_command(name, command):
    """A command, or each of a group, with its own options."""
    if isinstance(command, click.Group):
        for one, each in sorted(command.commands.items()):
            yield from of_command(f"{name} {one}", each)
        return
    context = click.Context(command, info_name=name)
    words = " ".join(
        each.make_metavar(context) for each in command.params if isinstance(each, click.Argument)
    )
    yield f"### `{name} {words}".rstrip() + "`"
    yield " ".join((command.help or "").split())
    settings = [f"`{each.name}`" for each in command.params if is_setting(each)]
    rows = [
        f"| {', '.join(f'`{one}`' for one in (*each.opts, *each.secondary_opts))} "
        f"| {in_cell(' '.join((each.help or '').split()))} |"
        for each in command.params
        if isinstance(each, click.Option) and not is_setting(each)
    ]
    if settings:
        few = f": {', '.join(settings)}" if len(settings) < len(ASKED) else ""
        kinds = "settings of a query" if name == "klsa-search" else "settings"
        rows.append(f"| | and the {kinds} below{few} |")
    yield "\n".join(["| | |", "|---|---|", *rows])


def is_setting(option):
    """Whether an option is one of a setting of an index."""
    field = Settings.model_fields.get(option.name)
    return field is not None and (option.help or "").startswith(field.description or " ")


def of_settings():
    """A row for each setting of an index."""
    rows = ["| setting | option | default | of a query | |", "|---|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        option = "--field" if name == "fields" else f"--{name.replace('_', '-')}"
        if field.annotation in (bool, bool | None):
            option += f"`, `--no-{option[2:]}"
        limits = "".join(
            f"; {word} {getattr(each, kind)}"
            for each in field.metadata
            for kind, word in (("ge", "from"), ("gt", "above"), ("le", "to"))
            if hasattr(each, kind)
        )
        default = field.default
        if isinstance(default, bool):  # 1 and 0 are equal to these, and numbers
            default = "yes" if default else "no"
        elif default == ():
            default = "none"
        elif default is None:
            default = "none" if name == "tokenizer" else "auto"
        asked = "yes" if name in ASKED else ""
        told = in_cell(field.description + limits)
        rows.append(f"| `{name}` | `{option}` | {default} | {asked} | {told} |")
    return "\n".join(rows)


def of_endpoints():
    """A part for each endpoint: what it is for, and its parameters."""
    with tempfile.TemporaryDirectory() as folder, Catalog(Path(folder)) as catalog:
        schema = create_app(catalog).openapi()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"### `{method.upper()} {path}`"
            yield " ".join(operation["description"].split())
            rows = [
                (each["name"], each["schema"].get("description", ""))
                for each in operation.get("parameters", ())
                if each["in"] == "query"
            ]
            bodies = operation.get("requestBody", {}).get("content", {})
            body = bodies.get("application/json", {}).get("schema", {})
            if "$ref" in body:
                kind = schema["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
                if kind["title"] == "SearchBody":
                    yield "The body is a JSON object of the parameters of `GET /search`."
                    continue
                rows += [
                    (name, about.get("description", ""))
                    for name, about in kind["properties"].items()
                ]
            if rows:
                cells = (f"| `{name}` | {in_cell(told)} |" for name, told in rows)
                yield "\n".join(["| | |", "|---|---|", *cells])


def in_cell(text):
    """Write a text so that it stays in its cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
