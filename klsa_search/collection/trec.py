"""TREC files: documents in SGML, and topics."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import lines
from klsa_search.collection.model import Document, Topic, text_fault
from klsa_search.errors import CollectionError

TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*+)[^<>]*+>")
START = re.compile(r"\s*<DOC>", re.IGNORECASE)
END = re.compile(r"</DOC>\s*$", re.IGNORECASE)
TITLES = ("title", "headline", "ttl", "head", "hl")
TOPIC = re.compile(r"<top>(.*?)</top>", re.IGNORECASE | re.DOTALL)
TOPIC_FIELD = re.compile(
    r"<(num|title|desc|narr)>(?:\s*(?:Number|Topic|Description|Narrative)\s*:)?", re.IGNORECASE
)


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


def read_topics(path: str | Path) -> list[Topic]:
    """Return the TREC topics of a file: id from <num>, text from <title>, else from <desc>.

    CollectionError if there is no topic, or one without a number, or a number occurs twice. Memory:
    the whole file.

    >>> read_topics("topics.txt")
    [Topic(id='301', text='wet roads')]
    """
    source = "".join(line for _, line in lines(Path(path)))
    fault = text_fault(source)
    if fault:
        raise CollectionError(f"{path}: the file {fault}; convert it to UTF-8")
    topics: dict[str, Topic] = {}
    for topic in TOPIC.finditer(source):
        where = f"{path}:{source.count(chr(10), 0, topic.start()) + 1}"
        fields = _topic_fields(topic[1])
        number = fields.get("num", "")
        if not number or number in topics:
            fact = f"the topic {number!r} is there before" if number else "a topic without <num>"
            raise CollectionError(f"{where}: {fact}; correct the file")
        text = fields.get("title") or fields.get("desc", "")
        topics[number] = Topic(id=number, text=text)
    if not topics:
        raise CollectionError(f"{path}: no <top> ... </top> in it; is it a TREC topics file?")
    return list(topics.values())


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
    tags = list(TAG.finditer(source))[1:-1]
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
    return html.unescape(TAG.sub(" ", source)).strip()


def _topic_fields(source: str) -> dict[str, str]:
    marks = list(TOPIC_FIELD.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    return {
        mark[1].lower(): " ".join(TAG.sub(" ", source[mark.end() : end]).split())
        for mark, end in zip(marks, ends, strict=True)
    }
