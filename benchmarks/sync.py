"""The cost of a sync, relative to a build and to adding the documents that differ.

    python -m benchmarks.sync CORPUS.jsonl [--first 100000] [--share 0.01] [--json FILE]

CORPUS is that of `benchmarks.corpora generate`; its texts become tickets with a product, a status
and a day. An index is built of the first ones, as CSV. In the next export, `share` of the tickets
has another status and one more line of text, as many vanished, and as many are new. `add_s` is
adding those that changed or are new to a copy of the index, `sync_s` a sync of another copy with
the export, and `again_s` the same sync once more, which writes nothing. All in one process
whose first write to the copy is done.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from klsa_search import Document, Index, build, open_index
from klsa_search.collection import open_collection

_FIELDS = ("id", "title", "text", "product", "status", "day")
Ticket = Mapping[str, str]


def tickets(documents: Iterable[Document]) -> list[Ticket]:
    """Return tickets with the texts of documents."""
    return [
        {
            "id": f"T-{number}",
            "title": " ".join(document.text.split()[:8]),
            "text": document.text,
            "product": f"product {number % 17}",
            "status": "open" if number % 3 else "closed",
            "day": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}",
        }
        for number, document in enumerate(documents)
    ]


def next_export(
    built: list[Ticket], new: list[Ticket], share: float
) -> tuple[list[Ticket], list[Ticket]]:
    """Return the tickets of the next export, and those of them that changed or are new."""
    count = round(share * len(built))
    chosen = np.random.default_rng(0).permutation(len(built))[: 2 * count].tolist()
    changed, gone = set(chosen[:count]), set(chosen[count:])
    export: list[Ticket] = []
    differing: list[Ticket] = []
    for number, ticket in enumerate(built):
        if number in changed:
            text = f"{ticket['text']} The customer wrote again."
            ticket = {**ticket, "status": "waiting", "text": text}
            differing.append(ticket)
        if number not in gone:
            export.append(ticket)
    return [*export, *new[:count]], [*differing, *new[:count]]


def write_table(path: Path, rows: Iterable[Ticket]) -> Path:
    """Write tickets as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def measured(every: list[Ticket], first: int, share: float, home: Path) -> dict[str, float]:
    """Return all figures, by name."""
    table = write_table(home / "tickets.csv", every[:first])
    begun = time.perf_counter()
    build(table, name="built", home=home).close()
    found = {"build_s": time.perf_counter() - begun}
    found |= compared(every, first, share, home)
    return found | {"sync_to_build": found["sync_s"] / found["build_s"]}


def compared(every: list[Ticket], first: int, share: float, home: Path) -> dict[str, float]:
    """Return the figures of copies of the index that was built."""
    export, differing = next_export(every[:first], every[first:], share)
    differences = write_table(home / "differences.csv", differing)
    table = write_table(home / "export.csv", export)
    with written(home, "added", differing[0]) as index:
        begun = time.perf_counter()
        index.add(differences)
        found = {"add_s": time.perf_counter() - begun}
    with written(home, "synced", differing[0]) as index:
        for name in ("sync", "again"):
            begun = time.perf_counter()
            result = index.sync(table)
            found[f"{name}_s"] = time.perf_counter() - begun
            found[f"{name}_batches"] = result.batches
            if name == "sync":
                found |= {"added": len(result.added), "changed": len(result.changed)}
                found |= {"deleted": len(result.deleted), "unchanged": result.unchanged}
        found["changed_share"] = index.drift.changed_share(len(index))
    return found | {"sync_to_add": found["sync_s"] / found["add_s"]}


@contextmanager
def written(home: Path, name: str, ticket: Ticket) -> Iterator[Index]:
    """Open a copy of the index after a first write, which loads and computes what all need."""
    shutil.rmtree(home / name, ignore_errors=True)
    with open_index(shutil.copytree(home / "built", home / name)) as index:
        index.add([{**ticket, "id": "first"}])
        index.delete(["first"])
        yield index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--first", type=int, default=100_000, help="tickets of the build")
    parser.add_argument("--share", type=float, default=0.01, help="changed, vanished and new, each")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    least = options.first + round(options.share * options.first)
    every = tickets(islice(open_collection(options.corpus).documents(), least))
    if len(every) < least:
        parser.error(f"{options.corpus} has {len(every)} documents; give a smaller --first")
    with tempfile.TemporaryDirectory(prefix="klsa-sync-") as home:
        found = measured(every, options.first, options.share, Path(home))
    for name, value in found.items():
        print(f"{name:18}{value:12.4g}")
    if options.json:
        record = {"documents": options.first, "share": options.share, **found}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
