"""Options that several commands share, and options generated from the settings."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from klsa_search.collection.reading_options import CheckedReadingOptions, ColumnOptions
from klsa_search.core.config import PRESETS, Settings
from klsa_search.core.plugins import PluginName
from klsa_search.core.settings_group import OptionDisplay
from klsa_search.errors import SettingsError
from klsa_search.storage.names import index_path

F = TypeVar("F", bound=Callable[..., Any])

# readable=False: the reader reports a folder that cannot be read.
FOLDER = click.Path(path_type=Path, file_okay=False, readable=False)
"""Type of an option that names a folder, which need not exist."""

FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True, readable=False)

home_option = click.option(
    "--home",
    type=FOLDER,
    default=Path("index"),
    envvar="KLSA_HOME",
    show_envvar=True,
    help="Use this index directory: the folder that holds all indexes",
)


def index_argument(function: F) -> F:
    """Add NAME and --home to a command, which gets the folder of that index as `path`."""

    @wraps(function)
    def located(*args: Any, name: str, home: Path, **kwargs: Any) -> Any:
        return function(*args, path=index_path(home, name), **kwargs)

    return cast(F, click.argument("name")(home_option(located)))


def opened_index(function: F) -> F:
    """Add NAME and --home to a command, which gets that index as `index`, open until it ends."""

    @wraps(function)
    def opened(*args: Any, path: Path, **kwargs: Any) -> Any:
        from klsa_search.search.index import open_index

        with open_index(path) as index:
            return function(*args, index=index, **kwargs)

    return index_argument(cast(F, opened))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")
json_file_option = click.option(
    "--json",
    "json_file",
    type=FILE,
    help="Also write the figures to this file as JSON, in full precision",
)
data_option = click.option(
    "--data",
    type=FOLDER,
    help="Look for named collections in this folder  [default: $KLSA_COLLECTIONS, then the user's "
    "cache]",
)
preset_option = click.option(
    "--preset",
    type=click.Choice(sorted(PRESETS)),
    help="Start from these settings  [default: default]",
)
config_option = click.option(
    "--config",
    type=EXISTING_FILE,
    help="Read settings and preset from this TOML file; options override it, and it overrides "
    "the preset",
)
service_config_option = click.option(
    "--config",
    type=EXISTING_FILE,
    envvar="KLSA_CONFIG",
    show_envvar=True,
    help="Read service settings from this TOML file",
)
memory_option = click.option(
    "--memory",
    metavar="AMOUNT",
    help="Limit the memory of a build, as in 4GiB  [default: three quarters of the machine's]",
)


workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="Build this many partitions at the same time  [default: one per processor]",
)
MODELS: Final = (
    "onnx:FOLDER, sentence-transformers:FOLDER, openai:URL#MODEL (API key in KLSA_EMBEDDER_KEY) or "
    "python:MODULE:FUNCTION, which is imported"
)
embedder_option = click.option(
    "--embedder",
    "embedders",
    metavar="SPACE=MODEL",
    multiple=True,
    help=f"Embed texts for this space of vectors: {MODELS}; repeatable",
)


def source_options(function: F) -> F:
    """Add the options that control how SOURCE is read: see `CheckedReadingOptions`.

    The command gets those that were given as `reading`, keyword arguments of `open_collection`; for
    a SOURCE of - it gets standard input.
    """

    @wraps(function)
    def reading(*args: Any, source: str, **kwargs: Any) -> Any:
        named = {name: kwargs.pop(name) for name in ColumnOptions.model_fields}
        options = {name: kwargs.pop(name) for name in ("data", *_READING)}
        options["columns"] = ColumnOptions.checked(without_none(named)).columns or None
        return function(
            *args,
            source=sys.stdin.buffer if source == "-" else source,
            reading=without_none(options),
            **kwargs,
        )

    named = settings_options(model=ColumnOptions)(cast(F, reading))
    return data_option(settings_options(*_READING, model=CheckedReadingOptions)(named))


_READING: Final = [
    name for name in CheckedReadingOptions.model_fields if name not in ("data", "columns")
]


class PluginChoice(click.Choice[str]):
    """Type of an option that names a built-in part, which help lists, or a plug-in."""

    def __init__(self, names: PluginName) -> None:
        super().__init__(names.built_in)
        self._names = names

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        """Return the name."""
        try:
            return self._names.checked(value)
        except PydanticCustomError as error:
            self.fail(f"{value!r}: {error.message()}", parameter, context)


def settings_options(
    *names: str, default: str | None = None, model: type[BaseModel] = Settings
) -> Callable[[F], F]:
    """Return a decorator that adds an option for each of these settings, or for all.

    Type, limits and help are those of the setting. An option that was not given is None.
    default  default in the help; by default that of the setting
    model    declares the settings
    """

    def decorate(function: F) -> F:
        for name in reversed(names or tuple(model.model_fields)):
            function = _setting_option(name, model.model_fields[name], default)(function)
        return function

    return decorate


def chosen_settings(config: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings (and `preset`) of a TOML file, overridden by the given options.

    SettingsError for invalid TOML or an unknown name, OSError. Values are not checked.
    """
    chosen: dict[str, Any] = {}
    if config is not None:
        try:
            chosen = tomllib.loads(config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"{config} is not valid TOML ({error}); correct it", field="config"
            ) from None
        names = ("preset", *sorted(Settings.model_fields))
        for name in chosen:
            if name not in names:
                raise SettingsError(
                    f"{config}: unknown setting {name!r}; the settings are: {', '.join(names)}",
                    field=name,
                )
    return chosen | without_none(options)


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, which are not None."""
    return {name: value for name, value in options.items() if value is not None}


def shown_as(field: FieldInfo) -> OptionDisplay:
    """Return what the declaration of a setting says about its option."""
    return next(
        (metadata for metadata in field.metadata if isinstance(metadata, OptionDisplay)),
        OptionDisplay(),
    )


def flag_of(name: str, field: FieldInfo) -> str:
    """Return the option of a setting."""
    option = "--" + name.replace("_", "-")
    return shown_as(field).option or (
        f"{option}/--no-{option[2:]}" if _only(field.annotation) is bool else option
    )


def default_of(field: FieldInfo) -> str:
    """Return the default of a setting, in words."""
    if default := shown_as(field).default:
        return default
    if _only(field.annotation) is bool:
        return {True: "yes", False: "no", None: "auto"}[field.default]
    return "none" if field.default in (None, "", ()) else f"{field.default}"


def _setting_option(name: str, field: FieldInfo, default: str | None) -> Callable[[F], F]:
    kind, description = _only(field.annotation), field.description or ""
    sentence = description[:1].upper() + description[1:]
    if name == "extra_stop_words":
        return click.option(
            flag_of(name, field),
            name,
            type=EXISTING_FILE,
            metavar="FILE",
            callback=lambda _context, _option, file: file and _words(file),
            help=f"{sentence}: a file of words, in UTF-8; # starts a comment",
        )
    if get_origin(kind) is tuple:
        none = ("none",) if kind is not field.annotation else None
        shown = shown_as(field).default
        return click.option(
            flag_of(name, field),
            name,
            multiple=True,
            metavar=shown_as(field).metavar,
            callback=lambda _context, _option, values: () if values == none else values or None,
            help=f"{sentence}; repeatable{f'  [default: {shown}]' if shown else ''}",
        )
    return click.option(
        flag_of(name, field),
        name,
        default=None,
        metavar=shown_as(field).metavar,
        type=_type_of(name, kind, field.metadata),
        help=f"{sentence}  [default: {default or default_of(field)}]",
    )


def text_of_file(file: Path, field: str) -> str:
    """Return the text of a file; SettingsError, for the named setting, if it is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{file} is not UTF-8 ({error}); save it as UTF-8", field=field
        ) from None


def _words(file: Path) -> tuple[str, ...]:
    """Return the distinct words of a file, sorted; errors as `text_of_file`."""
    lines = text_of_file(file, "extra_stop_words").splitlines()
    return tuple(sorted({word for line in lines for word in line.partition("#")[0].split()}))


def _only(annotation: Any) -> Any:
    """Return the type of a setting, without None."""
    if get_origin(annotation) in (Union, UnionType):
        return next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def _type_of(name: str, kind: Any, limits: Sequence[Any]) -> Any:
    """Return click's type for the values of a setting, with their limits."""
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    for limit in limits:
        if isinstance(limit, PluginName):
            return PluginChoice(limit)
    low, high = _limit(limits, "ge"), _limit(limits, "le")
    if kind is int:
        return click.IntRange(low, high)
    if kind is float:
        return float if low is high is None else click.FloatRange(low, high)
    if kind is Path:
        return FOLDER if name == "home" else FILE
    return bool if kind is bool else str


def _limit(metadata: Iterable[Any], name: str) -> Any:
    return next((getattr(limit, name) for limit in metadata if hasattr(limit, name)), None)
