"""Reuters-21578: 21,578 news stories in SGML, read as they stand."""

from __future__ import annotations

import gzip
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FILES = "reut2-*.sgm.gz"
_STORY = re.compile(r'<REUTERS[^>]*NEWID="(\d+)"[^>]*>(.*?)</REUTERS>', re.DOTALL)
_TEXT = re.compile(r"<TEXT([^>]*)>(.*?)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Story(NamedTuple):
    """One story; a brief one has a title only, so its text is empty."""

    id: str
    title: str
    text: str


def reuters_folder(given: Path | None = None) -> Path:
    """Folder of the files: `given`, else below $KLSA_DATASETS or ../shared/datasets; SystemExit."""
    home = Path(os.environ.get("KLSA_DATASETS", "../shared/datasets"))
    folder = given or home / "reuters21578"
    if not any(folder.glob(_FILES)):
        raise SystemExit(
            f"{folder} holds no {_FILES}: name the folder of Reuters-21578 with --data, "
            "or the folder above it in KLSA_DATASETS"
        )
    return folder


def stories(folder: Path) -> Iterator[Story]:
    """Yield the 21,578 stories in the order of the files.

    The text is the body; of the 737 stories marked UNPROC, which have no parts, it is everything.
    """
    for path in sorted(folder.glob(_FILES)):
        with gzip.open(path, "rt", encoding="latin-1", newline="\n") as file:
            for number, story in _STORY.findall(file.read()):
                yield _story(number, story)


def _story(number: str, story: str) -> Story:
    found = _TEXT.search(story)
    attributes, content = found.groups() if found else ("", "")
    if "UNPROC" in attributes:
        return Story(number, "", _clean(content))
    title, body = _TITLE.search(content), _BODY.search(content)
    heading = " ".join(_clean(title[1]).split()) if title else ""
    return Story(number, heading, _clean(body[1]) if body else "")


def _clean(text: str) -> str:
    return _CONTROL.sub("", html.unescape(_CONTROL.sub("", text))).strip()
