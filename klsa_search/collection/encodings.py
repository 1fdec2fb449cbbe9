"""Encodings of text that is not UTF-8: detection, and lines decoded."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from klsa_search.collection.lines import (
    NAMES,
    STEP,
    invalid_encoding,
    lines,
    lines_in,
    name_of_encoding,
    wide_encoding,
    wide_encoding_of,
)
from klsa_search.collection.model import TruncatedFile
from klsa_search.errors import CollectionError

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SAMPLE = 2**18  # bytes of lines beyond ASCII, from all parts of a text, that decide
_OTHER_SCRIPTS: Final = [
    "cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "cp932", "euc_jp", "gb18030", "big5",
    "cp949", "cp1253", "iso8859_7", "cp1255", "cp1256", "cp874",
]  # fmt: skip
_SHORT: Final = 80  # bytes of two-byte characters that are too few for charset-normalizer
_COMMON: Final = 0.8  # least share of common characters in a short text
# Languages, and the encodings of programs that write them, from the most frequent one.
_LATIN: Final = (
    ({"bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"}, ("cp1250", "iso8859_2")),
    ({"az", "tr"}, ("cp1254",)),
    ({"lt", "lv"}, ("cp1257",)),
)
_WESTERN: Final = ("cp1252", "cp850", "mac_roman")
_CONFIDENT = 0.8  # in a language, for another encoding than Western ones
_LONGEST = 10_000  # characters that the language is detected from
_MOST_BEYOND = 0.5  # bytes beyond ASCII in words with such bytes, in Latin letters
_MOST_IMPLAUSIBLE = 0.4  # of the characters beyond ASCII within words
_MIXED = 0.25  # valid Latin letters in UTF-8 for each invalid byte, from which a text is mixed
_INVALID: Final = re.compile("[\ud800-\udfff]")  # a byte that is not UTF-8
_WORD: Final = re.compile(rb"[A-Za-z\x80-\xff]{2,}")
_AFTER_LETTER: Final = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f](?P<inside>(?=[^\W\d_]))?")
_JOINS_WORDS: Final = "’‘·\xad–—"
_SIGNS: Final = "ƒªº"  # letters for Unicode, which no word has inside
_GREEK: Final = ("cp1253", "iso8859_7")

_OF_NAMES_AND_CODE: Final = frozenset(
    ["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"]
)
"""Codecs of Python for host names and source code, by which no file is encoded."""


def check_encoding(name: str | None) -> None:
    """Raise CollectionError if a name is not that of an encoding of text."""
    try:
        if codecs.lookup(name or "utf-8").name in _OF_NAMES_AND_CODE:
            raise LookupError
        b"a".decode(name or "utf-8", "replace")
    except LookupError:
        raise CollectionError(
            f"unknown encoding {name!r}; give one of Python's, such as {', '.join(sorted(NAMES))}",
            field="encoding",
        ) from None


def detect_encoding(text: Iterable[bytes]) -> str | None:
    """Return the codec of the lines of a text that is not UTF-8; None if it cannot be told.

    utf-8 if more than two valid characters stand beside each invalid byte. In Latin letters, bytes
    beyond ASCII stand alone in words; then the language decides, as charset-normalizer takes
    Windows-1252 for Windows-1250. It decides about other scripts. The encoding of a short text with
    two bytes a character is the one in which most characters are common ones.
    Cost: up to a second, once for Latin letters.

    >>> detect_encoding(["Насос течёт после замены, клапан не закрывается".encode("cp1251")])
    'cp1251'
    >>> detect_encoding(["Die Pumpe verliert Kühlmittel".encode("cp1252")])
    'cp1252'
    """
    sample = b"".join(_sampled(text))
    beyond = [c for c in sample.decode("utf-8", "surrogateescape") if c > "\x7f"]
    invalid = sum("\udc80" <= c <= "\udcff" for c in beyond)
    if not invalid or len(beyond) > 3 * invalid:
        return "utf-8"
    words = [word for word in _WORD.findall(sample) if not word.isascii()]
    high = sum(byte > 0x7F for word in words for byte in word)
    if high <= _MOST_BEYOND * sum(map(len, words)):
        letters = sum("\xc0" <= character <= "\u024f" for character in beyond)
        if letters > _MIXED * invalid:  # lines of both: those that are not UTF-8 are refused
            return "utf-8"
        return _latin_encoding(sample)
    return _encoding_of_script(sample)


def decoded(data: bytes, *encodings: str | None) -> str:
    """Return a text of any bytes: in UTF-16 or UTF-32 if it begins so, else in the first that fits.

    encodings  names, also unknown ones; if none fits, the text is in that detected, or Windows-1252
    """
    for codec in (wide_encoding(data), *encodings):
        try:
            if codec:
                return data.decode(codec).removeprefix("\ufeff")
        except (LookupError, ValueError):  # not only UnicodeDecodeError: `undefined`, "a\0b"
            continue
    return data.decode(detect_encoding(data.splitlines(keepends=True)) or "cp1252", "replace")


def decoded_lines(
    path: Path, encoding: str | None, note: Callable[[str], None]
) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line), decoded as UTF-8, UTF-16 or another encoding; see `lines`.

    encoding  by default detected: UTF-16 and UTF-32 by the first bytes, others by all lines at the
              first that is not UTF-8
    note      called with what was detected
    Bytes that are invalid in UTF-8 become lone surrogates. TruncatedFile if the encoding cannot be
    told, or does not fit.
    """
    if encoding is None:
        encoding = wide_encoding_of(path)
        if encoding:
            note(f"read as {name_of_encoding(encoding)}")
    if encoding:
        may_be_utf8, is_ascii = "utf-8" not in codecs.lookup(encoding).name, True
        for number, line in lines_in(path, encoding):
            if may_be_utf8 and not line.isascii():
                may_be_utf8, is_ascii = _is_utf8_in(line, encoding), False
            yield number, line
        if may_be_utf8 and not is_ascii:
            note(
                f"read as {name_of_encoding(encoding)}, but all of it is UTF-8; leave out the "
                "encoding if letters are wrong"
            )
        return
    detected: str | None = None
    for number, line in lines(path):
        if detected is None and not line.isascii() and _INVALID.search(line):
            status = path.stat()
            detected = _detected(path, status.st_size, status.st_mtime_ns)
            if detected is None:
                raise TruncatedFile(
                    f"{path}:{number}: the encoding is not UTF-8 and cannot be told; {STEP}"
                )
            if detected != "utf-8":
                note(
                    f"read as {NAMES[detected]}, because it is not UTF-8 (first in line "
                    f"{number:,}); if letters are wrong, {STEP}"
                )
        if detected in (None, "utf-8"):
            yield number, line
            continue
        try:
            yield number, line.encode("utf-8", "surrogateescape").decode(detected)
        except UnicodeDecodeError as error:
            raise invalid_encoding(path, number, detected, error) from None


@lru_cache(maxsize=64)
def _detected(path: Path, _size: int, _changed: int) -> str | None:
    """Return the encoding of a version of a file."""
    return detect_encoding(line.encode("utf-8", "surrogateescape") for _, line in lines(path))


def _sampled(text: Iterable[bytes]) -> list[bytes]:
    """Return lines beyond ASCII at equal distances, of `_SAMPLE` bytes and at least one."""
    kept: list[bytes] = []
    size, distance, number = 0, 1, 0
    for line in text:
        if line.isascii():
            continue
        if number % distance == 0:
            kept.append(line[:_SAMPLE])
            size += len(kept[-1])
            if size > _SAMPLE:
                kept, distance = kept[::2], 2 * distance
                size = sum(map(len, kept))
        number += 1
    return kept


def _latin_encoding(sample: bytes) -> str | None:
    """Return the encoding of a text in Latin letters, by its language and plausible letters."""
    codecs: tuple[str, ...] = _WESTERN
    for languages, candidates in _LATIN:
        text = sample.decode(candidates[0], "replace")[:_LONGEST]
        language, confidence = _identifier().classify(text)
        if language in languages and confidence >= _CONFIDENT:
            codecs = candidates
            break
    shares = [_implausible(sample, codec) for codec in codecs]
    return codecs[shares.index(min(shares))] if min(shares) <= _MOST_IMPLAUSIBLE else None


def _implausible(sample: bytes, codec: str) -> float:
    """Return the share of signs within words, and of capitals after small letters."""
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError:
        return 1.0
    pairs = [
        (text[match.start() - 1], match[0])
        for match in _AFTER_LETTER.finditer(text)
        if match["inside"] is not None or match[0].isalpha()  # signs may follow a word
    ]
    wrong = sum(
        not (character.isalpha() or character in _JOINS_WORDS)
        or character in _SIGNS
        or (character.isupper() and before.islower())
        for before, character in pairs
    )
    return wrong / len(pairs) if pairs else 0.0


def _encoding_of_script(sample: bytes) -> str | None:
    """Return the encoding of a text in another script, by charset-normalizer if it is long."""
    size = sum(byte > 0x7F for byte in sample)
    if size <= _SHORT and (codec := _encoding_of_short(sample)) is not None:
        return codec
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=_OTHER_SCRIPTS, preemptive_behaviour=False))
    if not matches:
        return None
    scores = [match.coherence - match.chaos for match in matches]
    best = matches[scores.index(max(scores))]
    if best.encoding in _GREEK:  # they differ in one capital, which is a sign in the other
        texts = {codec: sample.decode(codec, "replace") for codec in _GREEK}
        return max(_GREEK, key=lambda codec: sum(map(str.isalpha, texts[codec])))
    # Any bytes are letters of several alphabets, but few are valid in an encoding of two bytes.
    if scores.count(max(scores)) > 1 and best.encoding not in _COMMON_ROWS:
        return None
    encoding: str = best.encoding
    return encoding


def _encoding_of_short(sample: bytes) -> str | None:
    """Return the encoding of two bytes in which most characters are common; None without one."""
    shares = {codec: _common_share(sample, codec) for codec in _COMMON_ROWS}
    best = max(shares, key=lambda codec: shares[codec])
    if shares["euc_jp"] == shares[best] > 0 and _has_kana(sample.decode("euc_jp")):
        best = "euc_jp"
    return best if shares[best] >= _COMMON else None


def _common_share(sample: bytes, codec: str) -> float:
    """Return the share of Hangul, kana and common Chinese characters in letters beyond ASCII."""
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    letters = [character for character in text if character > "\x7f" and character.isalpha()]
    common = sum(_is_common(letter, letter.encode(codec), codec) for letter in letters)
    return common / len(letters) if letters else 0.0


def _is_common(letter: str, encoded: bytes, codec: str) -> bool:
    if codec in ("cp932", "euc_jp") and _has_kana(letter):
        return True
    if codec == "cp949" and not "\uac00" <= letter <= "\ud7a3":
        return False
    first, last = _COMMON_ROWS[codec]
    # The second bytes of the extensions of EUC are lower.
    rows_only = codec in ("cp932", "big5") or encoded[-1] > 0xA0
    return len(encoded) == len("ab") and first <= encoded[0] <= last and rows_only


_COMMON_ROWS: Final = {
    "cp932": (0x88, 0x97), "cp949": (0xB0, 0xC8), "gb18030": (0xB0, 0xD7), "big5": (0xA4, 0xC6),
    "euc_jp": (0xB0, 0xCF),
}  # fmt: skip
"""First and last value of the first byte of common characters: level 1 of each standard.

In encodings of two bytes, from the one that is taken if a short text is as usual in several.
"""


def _has_kana(text: str) -> bool:
    return any("\u3041" <= character <= "\u30fc" for character in text)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _is_utf8_in(line: str, encoding: str) -> bool:
    """Return whether the bytes of a line in an encoding are valid UTF-8."""
    try:
        line.encode(encoding).decode()
    except UnicodeError:
        return False
    return True
