"""Modules of klsa_search that a query and a document pass through.

    python -m benchmarks.passed_modules

A query: one GET /search, from the ASGI application to the answer, once everything is open and
compiled. A document: a build from a JSON Lines file, and a later write. Counted are modules of
which a function was called.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import klsa_search as klsa
from klsa_search.service.app import create_app
from klsa_search.service.catalog import Catalog

PACKAGE = Path(klsa.__file__).parent


def passed(work: Callable[[], Any]) -> list[str]:
    """Return the modules of which a function is called, in any thread, by the work."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and not frame.f_code.co_name.startswith("<module"):
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = (Path(file) for file in files if file.startswith(f"{PACKAGE}/"))
    return sorted(path.relative_to(PACKAGE).as_posix() for path in ours)


def main() -> None:
    """Print the modules, the query's first."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "reports.jsonl"
        texts = [f"pump {number} leaks coolant" for number in range(40)]
        lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(texts)]
        source.write_text("\n".join(lines))
        index: list[klsa.Index] = []

        def build() -> None:
            index.append(klsa.build(source, name="reports", home=folder))

        built = passed(build)
        written = passed(lambda: index[0].add([{"id": "new", "text": "a new pump"}]))
        index[0].warm_up()
        index[0].close()
        catalog = Catalog(Path(folder))

        def served() -> httpx.AsyncClient:
            transport = httpx.ASGITransport(create_app(catalog))  # with threads of its own
            return httpx.AsyncClient(transport=transport, base_url="http://localhost")

        async def ask(client: httpx.AsyncClient, query: str) -> None:
            async with client:
                (await client.get("/search", params={"q": query})).raise_for_status()

        asyncio.run(ask(served(), "pump"))
        client = served()
        queried = passed(lambda: asyncio.run(ask(client, "coolant leaks")))
        catalog.close()
    for name, modules in (("a query", queried), ("a build", built), ("a later write", written)):
        print(f"{name}: {len(modules)} modules", *modules, sep="\n  ")


if __name__ == "__main__":
    main()
