"""Mail, read with the standard library: files of one message, and mboxes."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path

from klsa_search.collection.encodings import decoded
from klsa_search.collection.files.content import Content, Section, metadata_of, one_line
from klsa_search.collection.files.formats import is_mailbox
from klsa_search.collection.files.html import content_of
from klsa_search.collection.lines import open_decompressed, read_decompressed, translate_read_errors


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read messages: subject, body, date, sender and recipient; attachments are left out."""
    if is_mailbox(path):
        for message in _messages(path):
            yield _content(message, encoding)
    else:
        yield _content(read_decompressed(path), encoding)


def _messages(path: Path) -> Iterator[bytes]:
    """Yield the messages of an mbox, one in memory at a time."""
    lines: list[bytes] = []
    blank = True
    with translate_read_errors(path), open_decompressed(path) as stream:
        for line in stream:
            if blank and line.startswith(b"From "):
                if lines:
                    yield b"".join(lines)
                lines = []
            else:
                lines.append(line[1:] if line.startswith(b">From ") else line)
            blank = not line.strip()
    if lines:
        yield b"".join(lines)


def _content(data: bytes, encoding: str | None) -> Content:
    message = message_from_bytes(data)
    texts: list[tuple[str, list[tuple[str, str]]]] = []  # of the message and of forwarded ones
    for part in message.walk():
        if not texts or "Subject" in part:
            texts.append((_header(part, "Subject"), []))
        is_text = part.get_content_type() in ("text/plain", "text/html")
        if is_text and part.get_content_disposition() != "attachment":
            texts[-1][1].append(_text(part, encoding))
    title = texts[0][0]
    return Content(
        title=title,
        sections=[
            section
            for number, (subject, parts) in enumerate(texts)
            for section in _sections(subject if number else "", parts)
        ],
        metadata=metadata_of(
            [_date(message)], author=_header(message, "From"), to=_header(message, "To")
        ),
    )


def _sections(heading: str, texts: list[tuple[str, str]]) -> Iterator[Section]:
    """Yield the sections of the texts of one message."""
    plain = [text.strip() for kind, text in texts if kind == "text/plain" and text.strip()]
    if heading or plain:
        yield Section(heading, "\n\n".join(plain))
    if not plain:  # most mails with HTML also have the same content as plain text
        for kind, text in texts:
            if kind == "text/html":
                yield from content_of(text).sections


def _text(part: Message, encoding: str | None) -> tuple[str, str]:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset() or encoding
    text = decoded(data, charset, "utf-8").replace("\0", "").replace("\r\n", "\n")
    return part.get_content_type(), text


def _header(message: Message, name: str) -> str:
    """Return a decoded header; parts that cannot be decoded stay as they are."""
    value = message.get(name)
    if value is None:
        return ""
    try:
        parts = decode_header(value)
    except ValueError:  # including HeaderParseError, for broken base64
        parts = [(str(value), None)]
    text = "".join(
        part if isinstance(part, str) else decoded(part, charset, "utf-8")
        for part, charset in parts
    )
    return one_line(text.encode("utf-8", "replace").decode().replace("\0", ""))


def _date(message: Message) -> str | None:
    try:
        return parsedate_to_datetime(str(message.get("Date"))).isoformat()
    except (ValueError, IndexError, OverflowError, TypeError):
        return None
