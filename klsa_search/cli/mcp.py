"""klsa-mcp: indexes as tools of an assistant."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.beside import MODULE
from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import home_option
from klsa_search.cli.output import echo
from klsa_search.extras import require


@click.command()
@click.argument("name", required=False)
@home_option
@click.option(
    "--http",
    "port",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Listen at http://127.0.0.1:PORT/mcp instead of standard input.",
)
@click.version_option(package_name="klsa-search")
@debug_option
def klsa_mcp(name: str | None, home: Path, port: int | None) -> None:
    """Let an assistant search the index NAME, or all indexes of a home, over MCP.

    It is started by the assistant, as `klsa-mcp --home FOLDER`, or runs with --http until it is
    stopped. Tools: search, fetch, explain and related; none of them changes anything.
    """
    require("mcp")
    from klsa_search.compiled.beside import compile_beside
    from klsa_search.connect.mcp import server

    made = server(home, name)
    compile_beside(MODULE)
    if port is None:
        made.run()
    else:
        echo(f"http://127.0.0.1:{port}/mcp", err=True)
        # Each request stands for itself: nothing is kept between two of them.
        made.run("streamable-http", port=port, stateless_http=True, json_response=True)


def main() -> None:
    """Run klsa-mcp."""
    run(klsa_mcp)
