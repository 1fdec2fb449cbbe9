"""Files of TREC, in SGML: documents and topics."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Document, text_fault
from klsa_search.errors import CollectionError

_TAG: Final = re.compile(r"<(/?)([A-Za-z][\w.-]*+)[^<>]*+>")
START = re.compile(r"\s*<DOC>", re.IGNORECASE)
END = re.compile(r"</DOC>\s*$", re.IGNORECASE)
TITLES = ("title", "headline", "ttl", "head", "hl")


def documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the <DOC> records of one file; each ends with a line that ends in </DOC>.

    The id is DOCNO, the title the first of TITLE, HEADLINE, TTL, HEAD, HL. The text is all of
    TEXT and the other elements become metadata; without a TEXT element everything but id and
    title is text. Tags inside are dropped, entities resolved.
    """
    record: list[str] = []
    begun = 0
    for number, line in lines(path):
        if START.match(line):
            if record:
                intake.refuse(f"{path}:{begun}: <DOC> without </DOC>")
            record, begun = [], number
        if begun:
            record.append(line)
            if END.search(line):
                yield from _document("".join(record), f"{path}:{begun}", intake)
                record, begun = [], 0
    if record:
        intake.refuse(f"{path}:{begun}: <DOC> without </DOC>")


def _document(source: str, origin: str, intake: Intake) -> Iterator[Document]:
    elements = _elements(source)
    names = [name for name, _ in elements]
    if names.count("docno") != 1:
        intake.refuse(f"{origin}: {names.count('docno')} DOCNO elements, one is needed")
        return
    title_name = next((name for name in TITLES if name in names), "title")
    text_name = "text" if "text" in names else None
    metadata: dict[str, list[str]] = {}
    texts: list[str] = []
    title = ""
    for name, text in elements:
        if name == title_name:
            title = title or text
        elif name != "docno" and name == (text_name or name):
            texts.append(text)
        elif name not in ("", "docno"):
            metadata.setdefault(name, []).append(text)
    yield Document(
        id=elements[names.index("docno")][1],
        title=title,
        text="\n".join(filter(None, texts)),
        metadata={name: " ".join(parts) for name, parts in metadata.items()},
        origin=origin,
    )


def _elements(source: str) -> list[tuple[str, str]]:
    """Return (lower-case name, plain text) of the outermost elements inside <DOC>, in order.

    An opening tag is paired with the next closing tag of its name; a tag that is never closed (<P>
    in SGML) is ignored. Text outside any element has the name "". Cost: linear in the source.
    """
    tags = list(_TAG.finditer(source))[1:-1]
    closings: dict[str, list[int]] = {}
    for tag in tags:
        if tag[1]:
            closings.setdefault(tag[2].lower(), []).append(tag.start())
    elements = []
    resume = source.index(">") + 1
    for tag in tags:
        name = tag[2].lower()
        ends = closings.get(name, [])
        at = bisect_left(ends, tag.end())
        if tag[1] or tag.start() < resume or at == len(ends):
            continue
        elements.append(("", _plain(source[resume : tag.start()])))
        elements.append((name, _plain(source[tag.end() : ends[at]])))
        resume = source.index(">", ends[at]) + 1
    elements.append(("", _plain(source[resume : source.rindex("<")])))
    return elements


def _plain(source: str) -> str:
    return html.unescape(_TAG.sub(" ", source)).strip()


_TOPIC: Final = re.compile(r"<top>(.*?)</top>", re.IGNORECASE | re.DOTALL)
_TOPIC_FIELD: Final = re.compile(
    r"<(num|title|desc|narr)>(?:\s*(?:Number|Topic|Description|Narrative)\s*:)?", re.IGNORECASE
)


def topics(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield origin, id and text of the <top> records of a file; CollectionError if it is no text.

    The id is of <num>, the text of <title>, else of <desc>. Memory: the whole file.
    """
    source = "".join(line for _, line in lines(path))
    fault = text_fault(source)
    if fault:
        raise CollectionError(f"{path}: the file {fault}; convert it to UTF-8")
    for topic in _TOPIC.finditer(source):
        marks = list(_TOPIC_FIELD.finditer(topic[1]))
        ends = [mark.start() for mark in marks[1:]] + [len(topic[1])]
        fields = {
            mark[1].lower(): " ".join(_TAG.sub(" ", topic[1][mark.end() : end]).split())
            for mark, end in zip(marks, ends, strict=True)
        }
        where = f"{path}:{source.count(chr(10), 0, topic.start()) + 1}"
        yield where, fields.get("num", ""), fields.get("title") or fields.get("desc", "")
