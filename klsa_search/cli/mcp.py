"""klsa-mcp: serve indexes as tools over MCP."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from klsa_search.cli.main import Command, run
from klsa_search.cli.options import home_option
from klsa_search.cli.output import echo
from klsa_search.core.installation import require


@click.command(cls=Command)
@click.argument("name", required=False)
@home_option
@click.option(
    "--http",
    "port",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Listen at http://127.0.0.1:PORT/mcp instead of standard input; there is no "
    "authentication: any process of this machine can search",
)
@click.version_option(package_name="klsa-search")
def klsa_mcp(name: str | None, home: Path, port: int | None) -> None:
    """Let an assistant search the index NAME, or all indexes, over MCP.

    The assistant starts it as `klsa-mcp --home FOLDER`; with --http it runs until stopped. Its
    tools (search, fetch, explain and related) are read-only.
    """
    require("mcp")
    from klsa_search.connect.mcp import server

    mcp = server(home, name)
    if port is None:
        mcp.run()
    else:
        echo(f"http://127.0.0.1:{port}/mcp", err=True)
        mcp.run("streamable-http", port=port, stateless_http=True, json_response=True)


main = partial(run, klsa_mcp)
