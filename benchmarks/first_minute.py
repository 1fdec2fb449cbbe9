"""The first minute of a newcomer: from a fresh clone to the first answer, and what it takes.

    python -m benchmarks.first_minute [--without-compiler] [--json FILE]

Clones the last commit into a folder of its own and runs `make run` there, with an empty cache of
pip, until the page answers a search over HTTP. `--without-compiler` hides C and C++ compilers, so
that zig of the package registry compiles the extension module. Then prints the size of the
environment, and seconds of what a person waits for: `import klsa_search`, the commands, and
`klsa-serve` to its address and to its first answer. Leaves nothing behind. Needs Linux and make.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
QUERY = "give up on a coroutine after some time"
PATIENCE = 3600.0  # seconds that anything may take
TURN = 0.02
COMPILER = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|c8\d|c9\d|cpp)(-[\d.]+)?$")


@dataclass
class Newcomer:
    """A clone with an environment and caches of its own."""

    folder: Path
    environment: dict[str, str]
    rows: list[tuple[str, float]] = field(default_factory=list)

    @property
    def clone(self) -> Path:
        return self.folder / "klsa-search"

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        # In a group of its own, so that what make started ends with it.
        return subprocess.Popen(
            command, cwd=self.clone, env=self.environment, text=True,
            start_new_session=True, **options,
        )  # fmt: skip

    def note(self, label: str, seconds: float) -> None:
        self.rows.append((label, seconds))
        print(f"{seconds:8.2f} s  {label}", flush=True)

    def time(self, label: str, *command: str) -> None:
        begun = time.perf_counter()
        process = self.start(*command, stdout=subprocess.DEVNULL)
        process.wait(PATIENCE)
        if process.returncode:
            raise SystemExit(f"{label}: exit status {process.returncode}")
        self.note(label, time.perf_counter() - begun)

    def serve(self, label: str, *command: str) -> None:
        """Start a service; note when it prints its address, and when it answers a search."""
        begun = time.perf_counter()
        process = self.start(*command, stdout=subprocess.PIPE)
        try:
            for line in process.stdout or ():
                if address := re.search(r"http://[\d.:]+", line):
                    break
            else:
                raise SystemExit(f"{label}: no address, exit status {process.wait()}")
            self.note(f"{label}: address", time.perf_counter() - begun)
            search(f"{address[0]}/search?q={QUERY.replace(' ', '+')}&k=3")
            self.note(f"{label}: first answer", time.perf_counter() - begun)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def search(address: str) -> None:
    """Search until the service answers; SystemExit if it finds nothing."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                if not json.load(answer)["hits"]:
                    raise SystemExit(f"{address}: no hits")
                return
        except urllib.error.URLError as failure:
            if isinstance(failure, urllib.error.HTTPError) or time.monotonic() > end:
                raise
            time.sleep(TURN)


def hide_compilers(folder: Path) -> str:
    """Return a PATH of links to all commands that are not compilers."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in sorted(Path(place).glob("*")):
            link = folder / command.name
            if not COMPILER.match(command.name) and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="The first minute of a newcomer.")
    parser.add_argument("--without-compiler", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory(prefix="klsa-first-") as name:
        folder = Path(name)
        caches = {"PIP_NO_CACHE_DIR": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        zig = {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig")}
        settings = {"KLSA_PORT": "0", "KLSA_HOME": "index", "PYTHON": sys.executable}
        dropped = {"VIRTUAL_ENV", "PYTHONPATH", "CC", "CXX", "MAKEFLAGS"}
        environment = {key: value for key, value in os.environ.items() if key not in dropped}
        environment |= caches | zig | settings
        if asked.without_compiler:
            environment["PATH"] = hide_compilers(folder / "bin")
            assert shutil.which("c++", path=environment["PATH"]) is None
        newcomer = Newcomer(folder, environment)
        clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(newcomer.clone)]
        subprocess.run(clone, check=True)
        newcomer.time("make: install", "make", ".venv/.installed")
        newcomer.serve("make run, installed", "make", "run")
        newcomer.serve("klsa-serve", ".venv/bin/klsa-serve")
        for turn in ("first", "again"):
            newcomer.time(f"import, {turn}", ".venv/bin/python", "-c", "import klsa_search")
            newcomer.time(f"klsa-index --help, {turn}", ".venv/bin/klsa-index", "--help")
            newcomer.time(f"klsa-search, {turn}", ".venv/bin/klsa-search", "python-docs", QUERY)
        used = ["du", "-sm", str(newcomer.clone / ".venv")]
        size = int(subprocess.run(used, capture_output=True, check=True).stdout.split()[0])
        print(f"{size:8} MB environment")
        if asked.json:
            figures = {"load": load, "megabytes": size, "seconds": newcomer.rows}
            asked.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
