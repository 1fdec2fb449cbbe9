"""klsa-serve: serve all indexes of an index directory."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from klsa_search.cli.main import Command, run
from klsa_search.cli.options import service_config_option, settings_options, without_none
from klsa_search.service.settings import ServiceSettings, read_settings


@click.command(cls=Command)
@service_config_option
@settings_options(model=ServiceSettings)
@click.version_option(package_name="klsa-search")
def serve(config: Path | None, **options: Any) -> None:
    """Serve every index of an index directory over HTTP, until stopped (Ctrl-C or SIGTERM).

    New and rebuilt indexes are loaded, and deleted ones dropped, within a second.

    Security: by default the service listens on this machine only, without API keys: every process
    of this machine can search and write. Create keys with klsa-keys before you use --host. Requests
    whose Host header is not a name of this machine are refused, unless --allowed-host allows it.

    Each option is also an environment variable (KLSA_ and its name) and a name in the TOML file of
    --config; options override variables, and variables override the file.
    """
    signal.signal(signal.SIGTERM, _exit)  # process 1 of a container has no default handler
    settings = read_settings(without_none(options), config)
    if settings.cluster is None and "replicas" in without_none(options):
        raise click.UsageError("--replicas needs --cluster")
    # Imported late, as it takes a second: help and usage errors need not wait.
    from klsa_search.cli.serving import serve_until_stopped

    serve_until_stopped(settings, without_none(options), config)


def _exit(*_: Any) -> NoReturn:
    raise SystemExit(0)


main = partial(run, serve)
