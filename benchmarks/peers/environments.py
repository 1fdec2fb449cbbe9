"""The peers, and an environment of its own for each: their dependencies never meet."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CACHE: Final = Path(__file__).parent.parent / ".peers"
"""Where environments and indexes are kept unless told otherwise; git leaves it alone."""


@dataclass(frozen=True)
class Peer:
    """One line of the tables."""

    engine: str  # module of `engines`
    packages: tuple[str, ...] = ()  # what pip installs; none: our own environment
    options: tuple[str, ...] = ()  # handed to the engine

    @property
    def index(self) -> str:
        """Folder of the index; peers of one engine share it."""
        return self.engine


PEERS: Final = {
    "bm25s": Peer("bm25s", ("bm25s==0.3.16", "numba==0.68.1", "PyStemmer==3.1.0")),
    "tantivy": Peer("tantivy", ("tantivy==0.27.0",)),
    "pisa": Peer("pisa", ("pyterrier-pisa==0.4.9",)),
    "klsa": Peer("klsa", options=("klsa",)),
    "klsa-bm25": Peer("klsa", options=("bm25",)),
}


def install(cache: Path, names: list[str]) -> None:
    """Create the environments that are not there yet; a failed one is not marked and made anew."""
    for name in names:
        peer, home = PEERS[name], cache / name
        done = home / ".installed"
        wanted = "\n".join(peer.packages)
        if not wanted or (done.exists() and done.read_text() == wanted):
            continue
        print(f"installing {name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True, timeout=3600)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        pip.append("--disable-pip-version-check")
        subprocess.run([*pip, *peer.packages], check=True, timeout=3600)
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


def best_qps(row: dict[str, float]) -> float:
    """Queries a second one at a time or in a batch, whichever is more."""
    return max(row["single_qps"], row.get("batch_qps", 0.0))


def print_tables(report: dict[str, Any]) -> None:
    """Print the searches, then the builds."""
    print(f"\n{report['corpus']}: {report['documents']:,} documents", end=", ")
    print(f"{report['queries']:,} queries, {report['rounds']} rounds, one thread\n")
    print("q/s cpu: by processor time, which other programs on the machine disturb less\n")
    print(f"{'':10}{'k':>6}{'one by one':>12}{'cpu':>9}{'in batch':>12}{'cpu':>9}", end="")
    print(f"{'p50 ms':>9}{'p99 ms':>9}{'peak MiB':>10}{'same@10':>9}")
    for k in next(iter(report["peers"].values()))["k"]:
        for name, peer in report["peers"].items():
            row = peer["k"][k]
            print(f"{name:10}{k:>6}", _speeds(row, "single"), _speeds(row, "batch"), end="")
            print(f"{row['p50_ms']:9.3f}{row['p99_ms']:9.3f}", end="")
            print(f"{peer['peak_bytes'] / 2**20:10,.0f}{peer.get('overlap_at_10', 0):9.2f}")
    print(f"\n{'':10}{'index s':>9}{'index MiB':>11}{'of text':>9}{'peak MiB':>10}{'open s':>8}")
    for name, peer in report["peers"].items():
        built = peer["build"]
        print(f"{name:10}{built['seconds']:9.1f}{built['index_bytes'] / 2**20:11,.1f}", end="")
        print(f"{built['index_bytes'] / report['text_bytes']:9.2f}", end="")
        print(f"{built['peak'] / 2**20:10,.0f}{peer['open']['seconds']:8.2f}")


def _speeds(row: dict[str, float], way: str) -> str:
    if f"{way}_qps" not in row:
        return f"{'-':>11}{'-':>9}"
    return f"{row[f'{way}_qps']:11,.0f}{row[f'{way}_processor_qps']:9,.0f}"


def plot(reports: list[dict[str, Any]], figure: Path) -> None:
    """Queries a second against N, a panel for each k, both axes logarithmic."""
    import matplotlib.pyplot as plt

    reports = sorted(reports, key=lambda report: report["documents"])
    depths = list(next(iter(reports[0]["peers"].values()))["k"])
    names = list(dict.fromkeys(name for report in reports for name in report["peers"]))
    drawn, panels = plt.subplots(1, len(depths), figsize=(5 * len(depths), 4), squeeze=False)
    for panel, k in zip(panels[0], depths, strict=True):
        for name in names:
            having = [report for report in reports if name in report["peers"]]
            counts = [report["documents"] for report in having]
            speeds = [best_qps(report["peers"][name]["k"][k]) for report in having]
            panel.loglog(counts, speeds, marker="o", label=name)
        panel.set(title=f"k = {k}", xlabel="documents", ylabel="queries per second, one thread")
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0][0].legend()
    drawn.tight_layout()
    drawn.savefig(figure)
