"""Data sets of the studies: where they lie, and how they are read."""

from __future__ import annotations

import gzip
import html
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np

from klsa_search.collection.lines import lines
from klsa_search.collection.queries import read_query_lines
from klsa_search.core.array_types import Matrix
from klsa_search.errors import CollectionError

DATASETS: Final[Mapping[str, str]] = {
    "ionosphere": "ionosphere.csv",
    "reuters21578": "reut2-*.sgm.gz",
}
"""Name of the folder → what its files are called."""


def query_texts(path: Path) -> list[str]:
    """Return the texts of a file with lines of an ID, a tab and a text."""
    return [query.text for query in read_query_lines(path)]


def collections_home() -> Path:
    """Return the folder of the collections: $KLSA_COLLECTIONS, or one beside the repository."""
    return Path(os.environ.get("KLSA_COLLECTIONS", "../shared/collections"))


def datasets_homes(data: Path | None) -> list[Path]:
    """Decide where data sets are looked for: only --data, where it is given.

    Else $KLSA_DATASETS, and the folder shared/datasets beside the working directory.
    """
    if data is not None:
        return [data]
    named = os.environ.get("KLSA_DATASETS")
    return [*([Path(named)] if named else []), Path.cwd().parent / "shared" / "datasets"]


def find_dataset(name: str, data: Iterable[Path]) -> Path:
    """Return the folder of a data set: the first below `data` that holds its files.

    CollectionError says where it was looked for and what has to be there.
    """
    looked = [place / name for place in data]
    for folder in looked:
        if any(folder.glob(DATASETS[name])):
            return folder
    places = " or ".join(map(str, looked)) or "any folder, for none was named"
    raise CollectionError(
        f"the data set {name} is not in {places}: put {DATASETS[name]} there, or name the folder "
        f"that {name} lies in (--data, $KLSA_DATASETS)"
    )


def reuters_folder(given: Path | None = None) -> Path:
    """Folder of Reuters-21578: `given`, else where data sets are looked for; SystemExit."""
    try:
        if given is not None:
            return find_dataset(given.name, [given.parent])
        return find_dataset("reuters21578", datasets_homes(None))
    except CollectionError as error:
        raise SystemExit(error.message) from None


ATTRIBUTES: Final = 34
CLASSES: Final = ("g", "b")


class LabelledPoints(NamedTuple):
    """Points (N, F) and the class of each."""

    values: Matrix
    classes: tuple[str, ...]


def read_ionosphere(folder: Path) -> LabelledPoints:
    """Read ionosphere.csv: a header, then 34 numbers and g (good) or b (bad) a line.

    CollectionError names the line that is none of that.
    """
    path = folder / "ionosphere.csv"
    rows, classes = [], []
    for number, line in lines(path):
        cells = line.strip().split(",")
        if number == 1 or cells == [""]:
            continue
        try:
            *row, label = cells
            rows.append([float(cell) for cell in row])
        except ValueError:
            raise CollectionError(f"{path}:{number}: a cell is no number: mend the line") from None
        if len(row) != ATTRIBUTES or label not in CLASSES or not np.isfinite(rows[-1]).all():
            raise CollectionError(
                f"{path}:{number}: not {ATTRIBUTES} finite numbers and a class, g or b: "
                "mend the line"
            )
        classes.append(label)
    if not rows:
        raise CollectionError(f"{path}: no line after the header: fetch the file again")
    return LabelledPoints(np.array(rows), tuple(classes))


_STORY = re.compile(r"<REUTERS([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TEXT = re.compile(r"<TEXT([^>]*)>(.*?)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PARTS: Final[dict[str, Literal["train", "test"]]] = {"TRAIN": "train", "TEST": "test"}


class Story(NamedTuple):
    """One story; a brief one has a title only, so its text is empty.

    topics  in alphabetical order
    part    of the ModApte split: 9,603 to train, 3,299 to test, of the others None
    """

    id: str
    title: str
    text: str
    topics: tuple[str, ...]
    part: Literal["train", "test"] | None


def read_reuters(folder: Path) -> Iterator[Story]:
    """Stream the stories in the order of the files reut2-000 ... reut2-021, gzipped.

    The text is the body; of the 737 stories marked UNPROC, which have no parts, it is everything.
    CollectionError for a file that is cut short or damaged. Memory: one file.
    """
    for path in sorted(folder.glob(DATASETS["reuters21578"])):
        try:
            with gzip.open(path, "rt", encoding="latin-1", newline="\n") as file:
                content = file.read()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CollectionError(
                f"{path}: the gzip data is cut short or damaged ({error}): fetch the file again"
            ) from None
        for head, story in _STORY.findall(content):
            yield _story(dict(_ATTRIBUTE.findall(head)), story)


def _story(attributes: dict[str, str], story: str) -> Story:
    listed = _TOPICS.search(story)
    topics = tuple(sorted(_TOPIC.findall(listed[1]))) if listed else ()
    part = _PARTS.get(attributes["LEWISSPLIT"]) if attributes["TOPICS"] == "YES" else None
    found = _TEXT.search(story)
    kind, content = found.groups() if found else ("", "")
    if "UNPROC" in kind:
        return Story(attributes["NEWID"], "", _clean(content), topics, part)
    title, body = _TITLE.search(content), _BODY.search(content)
    heading = " ".join(_clean(title[1]).split()) if title else ""
    text = _clean(body[1]) if body else ""
    return Story(attributes["NEWID"], heading, text, topics, part)


def _clean(text: str) -> str:
    return _CONTROL.sub("", html.unescape(_CONTROL.sub("", text))).strip()
