"""Run peers in turn: each keeps its index loaded in a process of its own and waits for its turn."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.peers.environments import PEERS, interpreter, one_thread
from klsa_search.analysis.languages import stop_words_of

_COMPARED: Final = 200  # queries whose answers are compared
_REFERENCE: Final = "bm25s"
_WARMING: Final = 3  # rounds not counted


class Channel:
    """A worker and the way to talk to it; a context manager that ends it."""

    def __init__(self, name: str, cache: Path, folder: Path, stop_words: Path) -> None:
        self.name, peer = name, PEERS[name]
        self._log = (cache / f"{name}.log").open("w")
        self._process = subprocess.Popen(
            [str(interpreter(cache, name)), "-m", "benchmarks.peers.worker", peer.engine]
            + [str(folder / peer.index), str(stop_words), *peer.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=one_thread(),
        )

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for the answer; SystemExit if the worker has died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"{self.name} died at {command!r}: see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=600)
        self._log.close()


def of_length(texts: list[str], words: int) -> list[str]:
    """Return queries of so many words, those of all texts one after the other; SystemExit."""
    joined = " ".join(texts).split()
    if len(joined) < words:
        raise SystemExit(f"the queries have {len(joined)} words, fewer than --words {words}")
    starts = range(0, len(joined) - words + 1, words)
    return [" ".join(joined[start : start + words]) for start in starts]


def compare(
    names: list[str], corpus: Path, texts: list[str], cache: Path, depths: list[int], rounds: int
) -> dict[str, Any]:
    """Build what is not built yet, run all rounds, and return the report."""
    folder = cache / "indexes" / corpus.stem
    folder.mkdir(parents=True, exist_ok=True)
    stop_words = folder / "stop_words.txt"
    stop_words.write_text("\n".join(sorted(stop_words_of("short", "english"))))
    report: dict[str, Any] = {
        "corpus": corpus.stem,
        "documents": sum(1 for _ in corpus.open("rb")),
        "text_bytes": corpus.stat().st_size,
        "queries": len(texts),
        "rounds": rounds,
        "machine": _machine(),
        "peers": {name: {"build": _built(name, corpus, cache, folder)} for name in names},
    }
    with ExitStack() as stack:
        channels = [stack.enter_context(Channel(name, cache, folder, stop_words)) for name in names]
        for channel in channels:
            row = report["peers"][channel.name]
            row["open"] = channel.ask("open", queries=texts)
            row["k"] = {str(k): {"single": [], "batch": []} for k in depths}
        for number in range(_WARMING + rounds):
            for k in depths:
                for channel in channels:
                    row = report["peers"][channel.name]
                    for way in ("single", "batch") if row["open"]["batch"] else ("single",):
                        taken = channel.ask("run", k=k, batch=way == "batch")
                        if number >= _WARMING:
                            row["k"][str(k)][way].append(taken)
        answers = {c.name: c.ask("answers", k=10, count=_COMPARED)["numbers"] for c in channels}
        for channel in channels:
            row = report["peers"][channel.name]
            row["peak_bytes"] = channel.ask("peak")["peak"]
            row["k"] = {k: _summary(ways, len(texts)) for k, ways in row["k"].items()}
            if _REFERENCE in answers:
                row["overlap_at_10"] = _overlap(answers[channel.name], answers[_REFERENCE])
    report["machine"]["load_after"] = os.getloadavg()
    return report


def _built(name: str, corpus: Path, cache: Path, folder: Path) -> dict[str, Any]:
    """Build the index of a peer, or return what was noted when it was built from this file."""
    home = folder / PEERS[name].index
    note = folder / f"{PEERS[name].index}.json"
    of = [str(corpus.resolve()), corpus.stat().st_size, corpus.stat().st_mtime]
    kept: dict[str, Any] = json.loads(note.read_text()) if note.exists() else {}
    if kept.get("of") == of:
        return kept
    shutil.rmtree(home, ignore_errors=True)
    print(f"building {name} of {corpus.name}", flush=True)
    with Channel(name, cache, folder, folder / "stop_words.txt") as channel:
        built = channel.ask("build", corpus=str(corpus))
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    built = {**built, "index_bytes": size, "of": of}
    note.write_text(json.dumps(built))
    return built


def _summary(ways: dict[str, list[dict[str, Any]]], count: int) -> dict[str, float]:
    """Queries a second: median of the rounds. Latency: of each query the median of the rounds.

    So a pause of the machine in one round counts as little as it should, and a slow query fully.
    `processor_qps` is by the time the processor gave, whoever else was using it.
    """
    latency = 1000 * np.median(np.array([taken["seconds"] for taken in ways["single"]]), axis=0)
    summary = {
        "p50_ms": float(np.quantile(latency, 0.5)),
        "p99_ms": float(np.quantile(latency, 0.99)),
    }
    for way, rounds in ways.items():
        if rounds:
            wall = (count / sum(taken["seconds"]) for taken in rounds)
            worked = (count / taken["processor_seconds"] for taken in rounds)
            summary[f"{way}_qps"] = statistics.median(wall)
            summary[f"{way}_processor_qps"] = statistics.median(worked)
    return summary


def _overlap(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """Mean share of the first ten that both have, over queries with any."""
    pairs = [(set(a), set(b)) for a, b in zip(ours, theirs, strict=True) if a or b]
    return statistics.mean(len(a & b) / max(len(a), len(b)) for a, b in pairs)


def _machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
    return {
        "processor": names[0].partition(": ")[2] if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": os.getloadavg(),
    }
