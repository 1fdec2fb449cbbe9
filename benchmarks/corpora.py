"""Corpora to measure with: Reuters-21578, and any number of documents like it.

    python -m benchmarks.corpora reuters OUT [--data DIR]
    python -m benchmarks.corpora generate N OUT [--seed 0] [--data DIR]
    python -m benchmarks.corpora queries OUT [--count 1000] [--seed 0] [--data DIR]

The first two write JSON lines of id, title and text (gzipped if OUT ends in .gz), the last lines of
a number, a tab and a title of Reuters, chosen at random. Reuters is looked for in
../shared/datasets/reuters21578, or below $KLSA_DATASETS; the same seed gives the same lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import IO

import numpy as np

from benchmarks.corpora_generator import documents
from benchmarks.corpora_model import fit
from studies.datasets import read_reuters, reuters_folder


def write_reuters(out: Path, folder: Path) -> None:
    with _opened(out) as file:
        for story in read_reuters(folder):
            line = {"id": story.id, "title": story.title, "text": story.text}
            file.write(json.dumps(line) + "\n")


def write_generated(count: int, out: Path, folder: Path, seed: int) -> None:
    model = fit((story.text for story in read_reuters(folder)), seed)
    with _opened(out) as file:
        for number, text in enumerate(documents(model, count, seed), start=1):
            # The generator's alphabet has nothing that JSON escapes.
            file.write(f'{{"id": "{number}", "title": "", "text": "{text}"}}\n')


def write_queries(out: Path, folder: Path, count: int, seed: int) -> None:
    titles = sorted({story.title for story in read_reuters(folder)} - {""})
    chosen = np.random.default_rng(seed).choice(len(titles), count, replace=False)
    with _opened(out) as file:
        for number, title in enumerate(np.array(titles, dtype=object)[chosen], start=1):
            file.write(f"{number}\t{title}\n")


def _opened(out: Path) -> IO[str]:
    """Open for writing; gzipped fast rather than small."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix != ".gz":
        return out.open("w", encoding="utf-8")
    return gzip.open(out, "wt", compresslevel=3, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("reuters", "generate", "queries"):
        command = commands.add_parser(name)
        if name == "generate":
            command.add_argument("count", type=int, metavar="N")
        if name == "queries":
            command.add_argument("--count", type=int, default=1000)
        command.add_argument("out", type=Path, metavar="OUT")
        command.add_argument("--data", type=Path, help="folder of the files of Reuters-21578")
        if name != "reuters":
            command.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = reuters_folder(options.data)
    match options.command:
        case "reuters":
            write_reuters(options.out, folder)
        case "generate":
            write_generated(options.count, options.out, folder, options.seed)
        case _:
            write_queries(options.out, folder, options.count, options.seed)


if __name__ == "__main__":
    main()
