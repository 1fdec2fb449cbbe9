"""Draw the pictures of docs/explanations/gallery.md, of the docstrings of the running Python.

For the drift an index is built of four fifths of them, in the order of the alphabet; the rest comes
in ten batches, and with each batch go ten documents of the build. Colours are cut down to 64.

python -m studies.gallery [--out docs/figures/gallery]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from klsa_search import Index, build
from klsa_search.collection import Document, open_collection
from klsa_search.mining.figures import PICTURES

BATCHES, GONE = 10, 10
COLOURS = 64


def written(documents: list[Document], home: Path) -> Index:
    """An index of most of these documents, to which the others were added later."""
    built = 4 * len(documents) // 5
    index = build(documents[:built], name="python-docs", home=home)
    rest = documents[built:]
    for number in range(BATCHES):
        some = rest[number * len(rest) // BATCHES : (number + 1) * len(rest) // BATCHES]
        index.add(some)
        index.delete([one.id for one in documents[number:built:BATCHES][:GONE]])
    return index


def draw(documents: Iterable[Document], out: Path) -> list[Path]:
    """Draw every picture into a folder, and name the files."""
    held = list(documents)
    paths = {what: out / f"{what}.png" for what in PICTURES}
    with tempfile.TemporaryDirectory() as home:
        index = build(held, name="python-docs", home=Path(home) / "built")
        later = written(held, Path(home) / "written")
        for what, path in paths.items():
            PICTURES[what](later if what == "drift" else index, path)
            with Image.open(path) as picture:
                reduced = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            reduced.save(path, optimize=True)
        index.close()
        later.close()
    return list(paths.values())


def main() -> None:
    parser = argparse.ArgumentParser(description="draw docs/explanations/gallery.md")
    parser.add_argument("--out", type=Path, default=Path("docs/figures/gallery"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for path in draw(open_collection("python-docs").documents(), out):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
