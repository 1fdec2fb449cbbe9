"""Reuters-21578: 21,578 news stories in SGML, with their topics and Lewis's marks of the splits."""

from __future__ import annotations

import gzip
import html
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from klsa_search.errors import CollectionError
from studies.datasets.finding import DATASETS

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
