"""Check that data are those that the figures of the documentation were measured with.

    python -m benchmarks.data [NAME ...] [--data FOLDER ...]

`benchmarks/data.toml` has, of each collection and data set, where it comes from, its licence, how
it was converted, and the SHA-256 sums of its files: of what they hold, uncompressed, several of one
pattern in the order of their names. Line endings do not count in those that `klsa-eval fetch`
downloads, which have been repacked over the decades. The command ends with 1 if a file is missing
or another.
"""

from __future__ import annotations

import gzip
import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from klsa_search.collection.public_collections import PUBLIC, text_sum
from studies import command_parser
from studies.datasets import collections_home, datasets_homes

MANIFEST = Path(__file__).with_name("data.toml")
FOLDERS = (collections_home(), collections_home() / "more", *datasets_homes(None))


def manifest() -> dict[str, Any]:
    """Return what is known of all data, by name."""
    return tomllib.loads(MANIFEST.read_text(encoding="utf-8"))


def sums_of(name: str) -> Mapping[str, str]:
    """Sums by name or pattern of the files; those that are fetched are known to the package."""
    return PUBLIC[name].sums if name in PUBLIC else manifest()[name]["sums"]


def sum_of(paths: Iterable[Path]) -> str:
    """SHA-256 of what some files hold together."""
    digest = hashlib.sha256()
    for path in paths:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            while piece := stream.read(2**20):
                digest.update(piece)
    return digest.hexdigest()


def check(name: str, folder: Path) -> str | None:
    """Say what is wrong with the data in a folder; None if nothing is."""
    for pattern, expected in sums_of(name).items():
        paths = sorted(folder.glob(pattern))
        if not paths:
            return f"{folder / pattern} is missing"
        found = text_sum(paths[0]) if name in PUBLIC else sum_of(paths)
        if found != expected:
            return f"{folder / pattern} has the sum {found}, not {expected}"
    return None


def main() -> None:
    known = manifest()
    parser = command_parser("benchmarks.data", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--data", type=Path, nargs="+", default=FOLDERS, metavar="FOLDER")
    options = parser.parse_args()
    failed = False
    for name in options.names or known:
        if name not in known:
            parser.error(f"no data {name}")
        folder = next((each / name for each in options.data if (each / name).is_dir()), None)
        fault = "is in none of the folders" if folder is None else check(name, folder)
        failed |= fault is not None
        print(f"{name}: whole" if fault is None else f"{name}: {fault}: {known[name]['get']}")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
