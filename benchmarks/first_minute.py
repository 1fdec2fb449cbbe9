"""The first minute of a newcomer, after the installation.

    python -m benchmarks.first_minute [--source python-docs] [--json FILE]

Works on a copy of the package in a folder of its own, with an empty cache, and leaves nothing
behind. Seconds of a build and its phases, of `klsa-serve` from its start to the address and to the
first answer, and of the commands that a person waits for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import klsa_search

QUERY = "give up on a coroutine after some time"
PATIENCE = 600.0  # seconds that anything may take
TURN = 0.02


@dataclass
class Newcomer:
    """A copy of the package, an empty home and an empty cache, in a folder of their own."""

    folder: Path
    rows: list[tuple[str, float]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "index"

    def environment(self) -> dict[str, str]:
        here = Path(__file__).parents[1]
        return os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(here)]),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }

    def python(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments], env=self.environment(), cwd=self.folder, text=True,
            **options,
        )  # fmt: skip

    def command(self, module: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        code = (
            f"import sys; from klsa_search.cli.{module} import main; sys.argv[0] = 'klsa'; main()"
        )
        return self.python("-c", code, *arguments, **options)

    def time(self, label: str, start: Callable[[], subprocess.Popen[str]]) -> None:
        begun = time.perf_counter()
        process = start()
        process.communicate(timeout=PATIENCE)
        if process.returncode:
            raise SystemExit(f"{label}: exit status {process.returncode}")
        self.note(label, time.perf_counter() - begun)

    def note(self, label: str, seconds: float) -> None:
        self.rows.append((label, seconds))
        print(f"{seconds:8.2f} s  {label}", flush=True)

    def build(self, source: str) -> None:
        """Build, and say when each phase began."""
        begun = time.time()
        with self.python(
            "-m", "benchmarks.first_minute", "--inside", source, str(self.home),
            stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                phase, at = line.rsplit(" ", 1)
                self.note(f"build: {phase}", float(at) - begun)
        if process.returncode:
            raise SystemExit(f"build: exit status {process.returncode}")

    def serve(self) -> None:
        begun = time.perf_counter()
        with self.command(
            "serve", "--home", str(self.home), "--port", "0",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=1,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                address = next(w for w in process.stdout.readline().split() if "://" in w)
                self.note("serve: listens", time.perf_counter() - begun)
                words = QUERY.replace(" ", "+")
                got(f"{address}/search?q={words}&k=3")
                self.note("serve: first answer", time.perf_counter() - begun)
            finally:
                process.terminate()
                process.wait(PATIENCE)


def got(address: str) -> dict[str, Any]:
    """Answer of a service, asked until it listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.URLError as failure:
            if isinstance(failure, urllib.error.HTTPError) or time.monotonic() > end:
                raise
            time.sleep(TURN)


def inside(source: str, home: str) -> None:
    """Build in this process; write each phase with the time of day at which it began."""
    seen: set[str] = set()

    def told(phase: str, _done: int, _total: int | None) -> None:
        if phase not in seen:
            seen.add(phase)
            print(f"{phase} {time.time()}", flush=True)

    from klsa_search import build

    print(f"imported {time.time()}", flush=True)
    build(source, name="first", home=home, progress=told).close()
    print(f"built {time.time()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="The first minute of a newcomer.")
    parser.add_argument("--source", default="python-docs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        inside(*asked.inside)
        return
    source = str(Path(asked.source).absolute()) if Path(asked.source).exists() else asked.source
    with tempfile.TemporaryDirectory(prefix="klsa-first-") as folder:
        shutil.copytree(
            Path(klsa_search.__file__).parent,
            Path(folder) / "klsa_search",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        newcomer = Newcomer(Path(folder))
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        print(f"load {load:.1f} on {os.cpu_count()} processors")
        newcomer.build(source)
        newcomer.serve()
        home = ("--home", str(newcomer.home))
        silent: dict[str, Any] = {"stdout": subprocess.DEVNULL}
        for label, command in {
            "klsa-index --help": ("index", "--help"),
            "klsa-index list": ("index", "list", *home),
            "klsa-search": ("search", "first", QUERY, *home),
        }.items():
            for turn in ("first", "again"):
                newcomer.time(f"{label}, {turn}", lambda c=command: newcomer.command(*c, **silent))  # type: ignore[misc]
        if asked.json:
            asked.json.write_text(json.dumps({"load": load, "seconds": newcomer.rows}, indent=2))


if __name__ == "__main__":
    main()
