"""Settings of the service: name, limits and description of each.

An option of `klsa-serve` overrides the variable `KLSA_...`, which overrides the TOML file, which
overrides the default. Options, their help and `docs/reference/service-settings.md` are generated
from these declarations.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, IPvAnyNetwork, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from klsa_search.core.arguments import brief
from klsa_search.core.settings_group import OptionDisplay, reason_of
from klsa_search.errors import SettingsError
from klsa_search.service.admission import HEAVY, REQUEST_TIMEOUT
from klsa_search.service.keys import FILE as KEYS_FILE
from klsa_search.storage.objects import refuse_password

PREFIX: Final = "KLSA_"
"""Prefix of the environment variables, which are the names of the settings in upper case."""


def _split(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


_LIST = (NoDecode, BeforeValidator(_split))
"""Type of a list: separated by blanks in a variable, a repeated option on the command line."""

Origin = Annotated[str, Field(pattern=r"^(\*|https?://[^/\s]+)$")]


class ServiceSettings(BaseSettings):
    """Settings of the service, created by `read_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid"
    )

    home: Path = Field(
        Path("index"), description="Use this index directory: the folder that holds all indexes"
    )
    host: str = Field(
        "127.0.0.1",
        description="Listen on this address. Other machines can reach any but the default: "
        "create API keys first",
    )
    port: int = Field(8000, ge=0, le=65535, description="Listen on this port; 0 takes a free one")
    allowed_hosts: Annotated[
        tuple[str, ...],
        *_LIST,
        OptionDisplay("--allowed-host", "NAME", "the names of this machine"),
    ] = Field(
        (),
        description="Answer requests for this further host name, as when a proxy passes it "
        "on; * allows any",
    )
    trusted_proxies: Annotated[
        tuple[IPvAnyNetwork, ...], *_LIST, OptionDisplay("--trusted-proxy", "ADDRESS")
    ] = Field(
        (),
        description="Take client, scheme and path prefix of requests from the X-Forwarded headers "
        "of the proxy at this address, or of those in this network",
    )
    writable: Annotated[
        bool | None,
        OptionDisplay(
            "--writable/--read-only",
            default="writable if it listens on this machine only and without --allowed-host",
        ),
    ] = Field(
        None,
        description="Accept writes without an API key, from anyone who can reach this port, "
        "or refuse all writes, those with a key too",
    )
    refit_threshold: Annotated[float, OptionDisplay("--refit-threshold", "SHARE")] = Field(
        0.2,
        ge=0,
        le=1,
        description="Rebuild an index in the background when this share of it was added or deleted "
        "since its build, if writes are allowed, and compact it sooner; 0 for never",
    )
    backup: Annotated[str | None, OptionDisplay(metavar="TARGET")] = Field(
        None,
        description="Back up all indexes to this directory or URL in the background, as "
        "klsa-index backup --all does; other services can follow it",
    )
    backup_every: Annotated[float, OptionDisplay(metavar="SECONDS")] = Field(
        3600, ge=0.1, description="Back up this many seconds after the end of the last backup"
    )
    backup_keep: int = Field(24, ge=1, description="Keep this many backups")
    follow: Annotated[str | None, OptionDisplay(metavar="SOURCE")] = Field(
        None,
        description="Serve the indexes that another service backs up to this directory or URL, "
        "read-only; the index directory must be empty at first. With --cluster, each "
        "machine restores the partitions that it serves",
    )
    follow_every: Annotated[float, OptionDisplay(metavar="SECONDS")] = Field(
        5, ge=0.1, description="Look for a new backup to follow at this interval"
    )
    keys: Annotated[
        Path | None, OptionDisplay(metavar="FILE", default=".keys.json in the index directory")
    ] = Field(
        None,
        description="Keep API keys in this file, which klsa-keys writes; while it exists, every "
        "request needs a key",
    )
    allow_no_keys: bool = Field(
        False,
        description="Listen where other machines can reach the service without API keys: "
        "anyone who can reach this port can search",
    )

    embedders: Annotated[tuple[str, ...], *_LIST, OptionDisplay("--embedder", "SPACE=MODEL")] = (
        Field(
            (),
            description="Embed queries and written documents in this space of vectors: "
            "onnx:FOLDER, sentence-transformers:FOLDER, openai:URL#MODEL "
            "(API key in KLSA_EMBEDDER_KEY) or python:MODULE:FUNCTION, which is imported",
        )
    )
    reranker: Annotated[str | None, OptionDisplay(metavar="MODEL")] = Field(
        None,
        description="Let searches with rerank=N order their first N hits by this reranker: "
        "python:MODULE:FUNCTION, which is imported",
    )

    title: str = Field("klsa-search", description="Show this title on the search page")
    logo: Annotated[Path | None, OptionDisplay(metavar="FILE")] = Field(
        None, description="Show this image on the search page, in SVG, PNG, JPEG or WebP"
    )
    front_index: Annotated[str | None, OptionDisplay(metavar="NAME")] = Field(
        None,
        description="Open this index on the search page, and show users who may not write neither "
        "the other indexes nor the tools",
    )
    root_path: str = Field(
        "",
        pattern=r"^(/[^/?#\s]+)*$",
        description="Serve under this prefix, which a reverse proxy removes, as in /find",
    )
    cors_origins: Annotated[
        tuple[Origin, ...], *_LIST, OptionDisplay("--cors-origin", "ORIGIN")
    ] = Field(
        (),
        description="Let browsers send requests from pages of this origin (CORS), as in "
        "https://example.org; * allows any",
    )
    tls_certificate: Annotated[Path | None, OptionDisplay(metavar="FILE")] = Field(
        None, description="Serve HTTPS with this certificate and its chain, in PEM"
    )
    tls_key: Annotated[
        Path | None, OptionDisplay(metavar="FILE", default="in the file of the certificate")
    ] = Field(None, description="Use this private key of the certificate, in PEM")
    log_format: Literal["plain", "json"] = Field(
        "plain",
        description="Write warnings and errors as text, or these and every request as lines "
        "of JSON, to stderr",
    )
    log_queries: bool = Field(
        False, description="Include queries, which may be private, in the log of requests"
    )
    analytics: bool = Field(
        False,
        description="Record queries and clicks in the index directory, for lists of frequent and "
        "failing queries: see docs/guides/analytics.md for what is stored",
    )
    analytics_days: Annotated[int, OptionDisplay(metavar="DAYS")] = Field(
        90, ge=1, le=3650, description="Keep the counts of queries and clicks for this many days"
    )
    analytics_min_searches: Annotated[int, OptionDisplay(metavar="SEARCHES")] = Field(
        2,
        ge=1,
        le=1000,
        description="List a query if it was searched this often, and keep its text after the end "
        "of the day if it was searched this often in the day",
    )

    workers: int = Field(
        1,
        ge=1,
        le=256,
        description="Serve with this many processes at one address; the limits below apply to each",
    )
    cluster: Annotated[str | None, OptionDisplay(metavar="ADDRESS")] = Field(
        None,
        description="Open the partitions of indexes in processes of this Ray cluster: local for "
        "processes of this machine, auto or HOST:PORT (pip install 'klsa-search[cluster]')",
    )
    replicas: int = Field(
        1,
        ge=1,
        le=64,
        description="Open each partition in this many processes of the cluster; if one is slow or "
        "dies, another is used",
    )
    threads: Annotated[int | None, OptionDisplay(default="as many as processors, 2 at least")] = (
        Field(None, ge=1, le=1024, description="Run this many requests at the same time")
    )
    heavy_threads: int = Field(
        HEAVY,
        ge=1,
        le=1024,
        description="Run this many expensive requests (with an estimated cost above 15 ms, or "
        "mining) at the same time",
    )
    request_timeout: float = Field(
        REQUEST_TIMEOUT,
        ge=0.1,
        le=3600,
        description="Answer a request that has run this many seconds with 503",
    )
    rate_limit: float = Field(
        0,
        ge=0,
        le=1e6,
        description="Limit the requests per second of each API key, or of each address without "
        "keys; as many may come at once; 0 for no limit",
    )

    @property
    def keys_file(self) -> Path:
        """Path of the file of API keys."""
        return self.keys or self.home / KEYS_FILE

    @property
    def add_key_command(self) -> str:
        """The command that creates an API key of this service."""
        file = f"--home {self.home}" if self.keys is None else f"--keys {self.keys}"
        return f"klsa-keys add NAME {file}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in the order of precedence."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def read_settings(arguments: Mapping[str, Any], config: Path | None = None) -> ServiceSettings:
    """Return the settings of options, environment and a TOML file.

    A service that follows is read-only. SettingsError for a value outside its limits, an unknown
    name in the file, or invalid TOML; OSError.
    """

    class Read(ServiceSettings, toml_file=config):
        pass

    if config is not None:
        config.open().close()  # pydantic-settings ignores a missing file
    try:
        settings = Read(**arguments)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{config} is not valid TOML ({error}); correct it", field="config"
        ) from None
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        if fault["type"] == "extra_forbidden":
            choices = ", ".join(ServiceSettings.model_fields)
            sentence = f"{config}: unknown setting {name!r}; the settings are: {choices}"
        else:
            value = brief(fault["input"])
            sentence = f"{_source(name, arguments, config)} = {value}: {reason_of(fault)}"
        raise SettingsError(sentence, field=name) from None
    for location in (settings.backup, settings.follow):
        if location is not None:
            refuse_password(location)
    if settings.follow is None:
        return settings
    if settings.writable:
        raise SettingsError(
            "a service that follows is read-only; leave out --writable, and write to the service "
            "that it follows",
            field="writable",
        )
    return settings.model_copy(update={"writable": False})


def _source(name: str, arguments: Mapping[str, Any], config: Path | None) -> str:
    """Return the source that sets a value, as messages name it."""
    variable = PREFIX + name.upper()
    if name in arguments:
        return name
    return variable if os.environ.get(variable) else f"{config}: {name}"
