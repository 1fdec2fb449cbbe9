"""What installing takes, into an environment with nothing in it: packages, megabytes, seconds.

    python -m benchmarks.package [WHEEL] [--extra NAME ...] [--none] [--json FILE]

Without a wheel, one is built of this checkout. It is installed by itself and once more with each
extra for users, or with those that are named, or with none. Each is fetched anew (no
cache of pip), so seconds hang on the network; those of the processor do not. Megabytes are those
of the files of all distributions, with what Python compiles of them.

What was installed is tried: nothing that it needs is missing, each extra is found, each command
tells its version, and three documents are built, searched and served with the search page.
Anything else ends with status 1. Needs no package but pip, and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from dataclasses import asdict, dataclass
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 12
OURS = ("docs", "test", "test-connect")
"""Extras for who works on the package."""
SIZES = """
import json
from importlib.metadata import distributions
def size(of):
    paths = {path.locate() for path in of.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file())
print(json.dumps({each.metadata["Name"]: size(each) for each in distributions(path=PATHS)}))
"""
FOUND = """
import sys
from klsa_search.core.installation import is_installed
sys.exit(not is_installed(sys.argv[1]))
"""
DOCUMENTS = (
    {"id": "heat", "text": "engines overheat when coolant leaks"},
    {"id": "tyre", "text": "worn tyres slip on wet roads"},
    {"id": "belt", "text": "a worn belt squeals in the cold"},
)


@dataclass(frozen=True)
class Installed:
    """What is there after an installation, and what it took."""

    what: str
    sizes: dict[str, int]  # bytes by the name of the distribution
    seconds: float
    processor_seconds: float

    @property
    def megabytes(self) -> float:
        return sum(self.sizes.values()) / 1e6

    def __str__(self) -> str:
        return (
            f"{self.what:24} {len(self.sizes):8} {self.megabytes:6.0f} {self.seconds:6.0f} "
            f"{self.processor_seconds:9.0f}"
        )


class Environment:
    """A virtual environment in a folder of its own, in which nothing is installed, not even pip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", "--without-pip", str(folder))

    def command(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def pip(self, *arguments: str) -> None:
        run(sys.executable, "-m", "pip", "--python", self.command("python"), *arguments)

    def install(self, wheel: Path, extra: str | None) -> Installed:
        what = f"{wheel}[{extra}]" if extra else str(wheel)
        begun, used = time.perf_counter(), processor()
        self.pip("install", "--quiet", "--no-cache-dir", what)
        seconds, used = time.perf_counter() - begun, processor() - used
        self.pip("check")
        if extra:
            run(self.command("python"), "-c", FOUND, extra)
        there = [str(path) for path in self.folder.glob("lib/python*/site-packages")]
        told = run(self.command("python"), "-c", f"PATHS = {there!r}\n{SIZES}")
        name = f"klsa-search[{extra}]" if extra else "klsa-search"
        return Installed(name, json.loads(told), seconds, used)


def run(*command: str, folder: Path | None = None) -> str:
    """What a command prints; SystemExit with what it says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=86_400)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def processor() -> float:
    """Seconds of processor time that finished children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def built(folder: Path) -> Path:
    """A wheel of this checkout, made of a copy: a folder `build` of before would go into it."""
    source = folder / "source"
    shutil.copytree(ROOT / "klsa_search", source / "klsa_search")
    for name in ("pyproject.toml", "build_backend.py", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def told(wheel: Path) -> tuple[str, list[str], list[str]]:
    """Version, extras for users and commands of a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        [facts] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(packed.read(facts).decode())
        points = packed.read(facts.replace("METADATA", "entry_points.txt")).decode()
    extras = [each for each in metadata.get_all("Provides-Extra", []) if each not in OURS]
    return metadata["Version"], extras, re.findall(r"^(klsa-[a-z]+) =", points, re.MULTILINE)


def try_out(environment: Environment, version: str, commands: list[str], folder: Path) -> None:
    """Ask each command for its version; build, search and serve three documents."""
    for command in commands:
        said = run(environment.command(command), "--version")
        if version not in said:
            raise SystemExit(f"{command} --version says {said.strip()}, the wheel {version}")
    lines = [json.dumps(each) + "\n" for each in DOCUMENTS]
    (folder / "cars.jsonl").write_text("".join(lines))
    run(environment.command("klsa-index"), "build", "cars.jsonl", "--name", "cars", folder=folder)
    found = run(environment.command("klsa-search"), "cars", "worn tyres", "--json", folder=folder)
    expect("klsa-search", '"tyre"', found)
    with subprocess.Popen(
        [environment.command("klsa-serve"), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1, cwd=folder,
    ) as service:  # fmt: skip
        try:
            assert service.stdout is not None
            first = service.stdout.readline()
            address = next((word for word in first.split() if "://" in word), "").rstrip("/")
            expect("klsa-serve", "http://", address)
            expect("GET /search", '"tyre"', got(f"{address}/search?q=worn+tyres"))
            expect("GET /", "<html", got(f"{address}/", accept="text/html"))
        finally:
            service.terminate()


def got(address: str, accept: str = "application/json") -> str:
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return str(answer.read().decode())


def expect(what: str, wanted: str, found: str) -> None:
    if wanted not in found:
        raise SystemExit(f"{what}: {wanted} is not in what came: {found[:500]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What installing takes.")
    parser.add_argument("wheel", nargs="?", type=Path, help="default: one built of this checkout")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--extra", action="append", metavar="NAME", help="default: all for users")
    which.add_argument("--none", action="store_true", help="without extras only")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="klsa-package-") as name:
        folder = Path(name)
        # Nothing that is there already is found: no package, no compiled code. Nor is any left.
        os.environ.pop("PYTHONPATH", None)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        wheel = asked.wheel.absolute() if asked.wheel else built(folder)
        version, extras, commands = told(wheel)
        print(f"wheel {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        print(f"{'':24} packages     MB      s  of which processor", flush=True)
        rows = []
        for extra in [None, *([] if asked.none else asked.extra or extras)]:
            environment = Environment(folder / (extra or "itself"))
            rows.append(environment.install(wheel, extra))
            print(rows[-1], flush=True)
            if extra is None:
                try_out(environment, version, [c for c in commands if c != "klsa-mcp"], folder)
                largest = sorted(rows[0].sizes.items(), key=lambda one: -one[1])[:LARGEST]
        print("MB of the largest, without extras:")
        print(", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
