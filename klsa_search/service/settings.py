"""Settings of the service, each declared once: its name, its limits, what it is for.

What `klsa-serve` is told by an option counts before `KLSA_...` in the environment, that before the
TOML file, and that before the default. Options, their help and the table of
`docs/reference/service-settings.md` are made from what stands here.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from klsa_search.errors import SettingsError
from klsa_search.service.admission import (
    HEAVY,
    HEAVY_WAITING,
    QUEUE_TIMEOUT,
    REQUEST_TIMEOUT,
    WAITING,
)

PREFIX: Final = "KLSA_"
"""What the names of the settings begin with in the environment, in upper case."""

_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


@dataclass(frozen=True)
class Told:
    """How a setting is told of where that does not follow from its declaration.

    option   of `klsa-serve`; by default --name
    metavar  what stands for its value in the help
    default  in words
    """

    option: str | None = None
    metavar: str | None = None
    default: str | None = None


def _parted(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


_PARTED = (NoDecode, BeforeValidator(_parted))
"""In the environment parted by blanks; as an option once for each."""

Origin = Annotated[str, Field(pattern=r"^(\*|https?://[^/\s]+)$")]


class ServiceSettings(BaseSettings):
    """How the service runs. Made by `read_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid"
    )

    home: Path = Field(
        Path("index"), description="Folder of the indexes, apart from the folders they are made of"
    )
    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one")
    allowed_hosts: Annotated[
        tuple[str, ...], *_PARTED, Told("--allowed-host", "NAME", "the names of this machine")
    ] = Field(
        (),
        description="Further name by which the service may be asked for, as a proxy passes it "
        "on; * allows any",
    )
    writable: Annotated[
        bool | None,
        Told(
            "--writable/--read-only",
            default="where it listens on this machine alone and no --allowed-host is given",
        ),
    ] = Field(
        None,
        description="Whether who needs no key may also add and delete documents; read-only refuses "
        "them with a key too",
    )
    refit_threshold: Annotated[float, Told("--refit-threshold", "SHARE")] = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of an index that was added or deleted since its build from which on it "
        "is built anew, beside, where writes are taken; 0 for never",
    )
    keys: Annotated[Path | None, Told(metavar="FILE", default=".keys.json in the home")] = Field(
        None, description="File of the keys, as klsa-keys makes it; while there is one, they count"
    )
    allow_no_keys: bool = Field(
        False,
        description="Whether it may listen where other machines reach it although there are no "
        "keys: whoever reaches it may search",
    )

    cors_origins: Annotated[tuple[Origin, ...], *_PARTED, Told("--cors-origin", "ORIGIN")] = Field(
        (),
        description="Origin, such as https://example.org, of pages that may ask in a browser "
        "(CORS); * allows any",
    )
    tls_certificate: Annotated[Path | None, Told(metavar="FILE")] = Field(
        None, description="Certificate, and its chain, in PEM; with it the service speaks TLS alone"
    )
    tls_key: Annotated[
        Path | None, Told(metavar="FILE", default="in the file of the certificate")
    ] = Field(None, description="Private key of the certificate, in PEM")
    log_format: Literal["plain", "json"] = Field(
        "plain",
        description="What goes to stderr: warnings and errors as sentences, or those and every "
        "request as lines of JSON",
    )
    log_queries: bool = Field(
        False, description="Whether a request's line also has the query, which may be private"
    )

    workers: int = Field(
        1,
        ge=1,
        le=256,
        description="Processes that answer at one address; the limits below are those of each",
    )
    cluster: Annotated[str | None, Told(metavar="ADDRESS")] = Field(
        None,
        description="Ray cluster whose processes search the indexes in shards: local for processes "
        "of this machine, auto or HOST:PORT (pip install 'klsa-search[cluster]')",
    )
    shards: int = Field(
        4, ge=1, le=1024, description="Shards of an index, where a cluster searches it"
    )
    replicas: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes that have each shard; another is asked where one is slow or dies",
    )
    threads: Annotated[int | None, Told(default="as many as processors, 2 at least")] = Field(
        None, ge=1, le=1024, description="Requests that run at the same time"
    )
    queue_size: int = Field(
        WAITING,
        ge=0,
        le=100_000,
        description="Requests that may wait; the rest is refused. Fewer, 16 at least, where the "
        "last of so many would wait for more than .1 s",
    )
    heavy_threads: int = Field(
        HEAVY,
        ge=1,
        le=1024,
        description="Expensive requests (an estimated cost above 15 ms, or mining) that run at the "
        "same time",
    )
    heavy_queue_size: int = Field(
        HEAVY_WAITING, ge=0, le=100_000, description="Expensive requests that may wait"
    )
    queue_timeout: float = Field(
        QUEUE_TIMEOUT, ge=0.1, le=3600, description="Seconds that one waits at most"
    )
    request_timeout: float = Field(
        REQUEST_TIMEOUT,
        ge=0.1,
        le=3600,
        description="Seconds after which one that runs is answered with 503",
    )
    rate_limit: float = Field(
        0,
        ge=0,
        le=1e6,
        description="Requests a second that each key may make, or each address where no key is "
        "needed; a second of them may come at once; 0 for no limit",
    )

    @property
    def keys_file(self) -> Path:
        """Where the keys are."""
        return self.keys or self.home / ".keys.json"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Name the sources, the one that counts first before the others."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def read_settings(given: Mapping[str, Any], config: Path | None = None) -> ServiceSettings:
    """Put together what was given, the environment and a TOML file.

    SettingsError for a value outside its limits, a name that the file has and no setting, and a
    file that is not TOML; OSError.
    """

    class Read(ServiceSettings, toml_file=config):
        pass

    if config is not None:
        config.open().close()  # a file that is not there would count as empty
    try:
        return Read(**given)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is not TOML: {error}", field="config") from None
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        if fault["type"] == "extra_forbidden":
            known = ", ".join(ServiceSettings.model_fields)
            sentence = f"{config}: there is no setting {name!r}; there are: {known}"
        else:
            value = _BRIEF.repr(fault["input"])
            sentence = f"{_whence(name, given, config)} = {value}: {fault['msg']}"
        raise SettingsError(sentence, field=name) from None


def told_of(field: FieldInfo) -> Told:
    """How a setting is told of."""
    return next((each for each in field.metadata if isinstance(each, Told)), Told())


def _whence(name: str, given: Mapping[str, Any], config: Path | None) -> str:
    """Name the source whose value counts."""
    variable = PREFIX + name.upper()
    if name in given:
        return name
    return variable if os.environ.get(variable) else f"{config}: {name}"
