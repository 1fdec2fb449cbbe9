"""Markdown, read with markdown-it, and notebooks.

Front matter in YAML or TOML gives title and metadata.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from klsa_search.collection.columns import names_versions
from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    SectionBuilder,
    Unreadable,
    one_line,
)
from klsa_search.collection.files.plain import text_of
from klsa_search.collection.json_values import json_value
from klsa_search.collection.lines import read_decompressed
from klsa_search.collection.model import text_fault

if TYPE_CHECKING:
    from markdown_it.token import Token


_FRONT: Final = re.compile(
    r"(?P<fence>---|\+\+\+)(?:yaml|toml)?[ \t]*\n(?P<content>.*?)(?:\n|(?<=\n))"
    r"(?:(?P=fence)|\.\.\.)[ \t]*(?:\n|$)",
    re.DOTALL,
)
_WIKI: Final = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_IMPORTS: Final = re.compile(r"\s*(?:^(?:import|export)\b.*\n(?:.+\n)*\s*)+", re.MULTILINE)
"""Code at the beginning of MDX."""
_TAG: Final = re.compile(r"<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL)
_NOT_FIELDS: Final = ("title", "kind", "path")
_FIELD: Final = re.compile(r"^(\w+)[ \t]*[:=][ \t]*(\S.*)$", re.MULTILINE)
_LONGEST_FRONT: Final = 2**20  # characters; aliases of YAML may multiply them
_BREAKS: Final = {"softbreak", "hardbreak"}
_BEGINS: Final = {"list_item_open": ITEM, "td_open": CELL, "th_open": CELL}
_LINES: Final = {"tr_close", "list_item_close"}
_PARTS: Final = {"td_close", "th_close", "thead_close", "tbody_close"}


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file as one document; its title is in the front matter or the first heading."""
    text, notes = text_of(path, encoding)
    text = text.replace("\r\n", "\n")
    fields, after = _front_matter(text, notes := list(notes))
    text = text[after:]
    if path.suffix.lower() == ".mdx":
        imports = _IMPORTS.match(text)
        text = text[imports.end() :] if imports else text
    builder = SectionBuilder()
    heading = add_markdown(text, builder)
    yield Content(
        notes=notes,
        title=one_line(str(fields.get("title") or "")) or heading,
        sections=builder.sections(),
        metadata={
            name: _several(value) if name in _LISTED else value
            for name, value in _with_labels(fields).items()
            if name not in _NOT_FIELDS and value not in (None, "", [], {})
        },
    )


def add_markdown(text: str, builder: SectionBuilder) -> str:
    """Add a text in Markdown, and return the heading before all other text, "" without one."""
    from markdown_it import MarkdownIt

    first, has_text = "", False
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for number, token in enumerate(tokens):
        if token.type == "inline":
            visible = _visible(token)
            if tokens[number - 1].type == "heading_open":
                builder.begin(visible, int(tokens[number - 1].tag[1:]))
                first = first or ("" if has_text else visible)
            else:
                builder.add(visible)
                has_text = True
        elif token.type in ("fence", "code_block"):
            builder.add_code(token.content)
            has_text = True
        elif token.type == "html_block":
            visible = _TAG.sub(" ", token.content)
            builder.add(f"{visible}\n\n")
            has_text = has_text or bool(visible.strip())
        elif token.type in _BEGINS:
            builder.add(_BEGINS[token.type])
        elif token.type in _LINES or (token.type == "paragraph_close" and token.hidden):
            builder.add("\n")
        elif token.nesting < 1 and token.block and token.type not in _PARTS:
            builder.add("\n\n")
    return first


_LISTED: Final = ("aliases", "categories", "keywords", "tags")


def _several(value: Any) -> Any:
    """Return a text with commas as the list of its parts."""
    if not isinstance(value, str) or "," not in value:
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _front_matter(text: str, notes: list[str]) -> tuple[dict[str, Any], int]:
    """Return the fields of the front matter of a text, and where the text after it begins.

    notes  gets a note if it is not valid
    """
    front = _FRONT.match(text)
    if front is None:
        return {}, 0
    is_yaml = front["fence"] == "---"
    fields, is_valid = _fields(front["content"], is_yaml=is_yaml)
    if fields and not is_valid:
        notes.append(
            f"front matter is not valid {'YAML' if is_yaml else 'TOML'}: only its lines of a name "
            "and a value are read"
        )
    is_front = bool(fields) or not is_yaml or not front["content"].strip()
    return fields, front.end() if is_front else 0  # else it is text between two rules


def _fields(front: str, *, is_yaml: bool) -> tuple[dict[str, Any], bool]:
    """Return the fields of front matter, and whether it is valid; else of lines `name: value`."""
    import yaml

    is_valid = True
    try:
        read = _loads_yaml(front) if is_yaml else tomllib.loads(front, parse_float=_decimal)
        if not isinstance(read, dict):
            raise ValueError("no fields")
        fields = {str(name): json_value(value) for name, value in _plain(read).items()}
        written = json.dumps(fields, allow_nan=False)
        if text_fault(written) or len(written) > _LONGEST_FRONT:
            raise ValueError("cannot be stored")
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        fields = {name: value.rstrip(" \t").strip("\"'") for name, value in _FIELD.findall(front)}
        is_valid = False
    lowered = {name.lower(): value for name, value in fields.items()}
    language = lowered.pop("lang", None)
    return lowered if language is None else {"language": language, **lowered}, is_valid


def _decimal(written: str) -> float | str:
    """Return a number, as a text if it loses digits: 3.10 would be 3.1."""
    return written if re.fullmatch(r"-?\d+\.\d*0", written) else float(written)


class _Switch(str):
    """A word that YAML takes for a truth value, as it is written: no, yes, off or on."""


_SCALARS: Final = {
    "null": ("~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": ("(?i:true|false|yes|no|on|off)", [*"tTfFyYnNoO"]),
    "int": (r"-?(?:0|[1-9]\d*)|0x[\da-fA-F]+", [*"-0123456789"]),
    "float": (r"-?\d+\.\d*[1-9]", [*"-0123456789"]),
}
"""Plain values that are no texts, and their first characters: not 00123, 12:30, +49 and 1.10."""


def _loads_yaml(text: str) -> Any:
    """Return the value of YAML, about as its version 1.2 reads it."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
        yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}

        def construct_switch(self, node: Any) -> Any:
            is_bool = node.value.lower() in ("true", "false")
            return self.construct_yaml_bool(node) if is_bool else _Switch(node.value)

    for kind, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z"), first
        )
    Loader.add_constructor("tag:yaml.org,2002:bool", Loader.construct_switch)
    return yaml.load(text, Loader)  # noqa: S506 - a subclass of SafeLoader


_WORDS: Final = ("lang", "language", "locale", "title")
"""Fields in which `no` is Norwegian, or a title."""


def _plain(value: Any, name: str = "", *, in_list: bool = False) -> Any:
    """Return the value of a field with versions as they are written.

    `no` and `yes` are truth values, but not in lists, in capitals, or as languages and titles.
    """
    if isinstance(value, dict):
        return {inner: _plain(item, str(inner)) for inner, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, name, in_list=True) for item in value]
    if isinstance(value, _Switch):
        is_word = in_list or value.isupper() or name.lower() in _WORDS
        return str(value) if is_word else value.lower() in ("on", "yes")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and names_versions(name) else value


def _with_labels(value: Any) -> Any:
    """Return a value with wiki links as their labels."""
    if isinstance(value, dict):
        return {name: _with_labels(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_labels(item) for item in value]
    return _WIKI.sub(_label, value) if isinstance(value, str) else value


def _label(link: re.Match[str]) -> str:
    """Return the visible text of a wiki link: its label, else its page and heading."""
    page = link[1].partition("#^")[0]  # without the ID of a block
    return (link[2] or page.replace("#", " > ").removeprefix(" > ")).strip()


def _visible(inline: Token) -> str:
    return "".join(
        "\n"
        if child.type in _BREAKS
        else ""
        if child.type == "html_inline"
        else child.content
        if child.type == "code_inline"
        else _WIKI.sub(_label, child.content)
        for child in inline.children or ()
    )


def read_notebook(path: Path) -> Iterator[Content]:
    """Read Markdown and code of a notebook of Jupyter, without outputs, as one document.

    Its title is a heading at the beginning.
    """
    try:
        cells = [
            (cell["cell_type"], "".join(cell["source"]))  # a text, or its lines
            for cell in json.loads(read_decompressed(path))["cells"]
        ]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Unreadable("is damaged", f"no cells of a notebook: {error!r}") from None
    builder, title = SectionBuilder(), ""
    for number, (kind, source) in enumerate(cells):
        if kind == "code":
            builder.add_code(source)
        elif kind == "markdown":
            heading = add_markdown(source, builder)
            title = title or (heading if number == 0 else "")
            builder.add("\n\n")
    yield Content(title=title, sections=builder.sections())
