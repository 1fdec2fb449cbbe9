"""Ways to damage one file: each takes its content and gives another, or None where it cannot."""

from __future__ import annotations

import random
from collections.abc import Callable

PAGE = 4096
_DATA = 128
"""Where the numbers of an array begin, in a file of NumPy's."""

Damage = Callable[[bytes, random.Random], bytes | None]


def _put(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + piece + content[at + len(piece) :]


def _flip(content: bytes, at: int, chance: random.Random) -> bytes:
    return _put(content, at, bytes([content[at] ^ 1 << chance.randrange(8)]))


def bit(content: bytes, chance: random.Random) -> bytes | None:
    """Turn over one bit, anywhere."""
    return _flip(content, chance.randrange(len(content)), chance) if content else None


def header_bit(content: bytes, chance: random.Random) -> bytes | None:
    """Turn over one bit of what comes first."""
    return _flip(content, chance.randrange(min(len(content), _DATA)), chance) if content else None


def _page(content: bytes, filling: int, chance: random.Random) -> bytes | None:
    at = chance.randrange(len(content) // PAGE + 1) * PAGE
    return _put(content, at, bytes([filling]) * len(content[at : at + PAGE]))


def zeroed_page(content: bytes, chance: random.Random) -> bytes | None:
    """Lose a page, as a disk does."""
    return _page(content, 0, chance)


def filled_page(content: bytes, chance: random.Random) -> bytes | None:
    """Lose a page to ones."""
    return _page(content, 0xFF, chance)


def zeroed(content: bytes, chance: random.Random) -> bytes | None:
    """Leave the length, and of an array the header."""
    head = _DATA if content.startswith(b"\x93NUMPY") else 0
    return content[:head] + bytes(len(content) - head)


def filled(content: bytes, chance: random.Random) -> bytes | None:
    """The same, with ones."""
    head = _DATA if content.startswith(b"\x93NUMPY") else 0
    return content[:head] + b"\xff" * (len(content) - head)


def large_number(content: bytes, chance: random.Random) -> bytes | None:
    """Make one number of an array far too large."""
    if not content.startswith(b"\x93NUMPY") or len(content) < _DATA + 8:
        return None
    at = _DATA + 4 * chance.randrange((len(content) - _DATA) // 4)
    return _put(content, at, b"\xff\xff\xff\x7e")


def small_step(content: bytes, chance: random.Random) -> bytes | None:
    """Make one number of an array a little larger."""
    if not content.startswith(b"\x93NUMPY") or len(content) < _DATA + 8:
        return None
    at = _DATA + 4 * chance.randrange((len(content) - _DATA) // 4)
    return _put(content, at, bytes([(content[at] + 1) % 256]))


def cut_short(content: bytes, chance: random.Random) -> bytes | None:
    """Lose the end."""
    return content[: chance.randrange(1, len(content))] if len(content) > 1 else None


def one_less(content: bytes, chance: random.Random) -> bytes | None:
    """Lose the last byte."""
    return content[:-1]


def prolonged(content: bytes, chance: random.Random) -> bytes | None:
    """Grow by some bytes."""
    return content + bytes(chance.choice((1, 8, PAGE)))


def empty(content: bytes, chance: random.Random) -> bytes | None:
    """Lose everything."""
    return b""


def other_shape(content: bytes, chance: random.Random) -> bytes | None:
    """Give an array another shape or type of the same length."""
    swaps = [(b"<i4", b"<f4"), (b"<f4", b"<i4"), (b"<i8", b"<f8"), (b"<f8", b"<i8"),
             (b"<u4", b"<i4"), (b"|i1", b"|u1"), (b"'shape': (1", b"'shape': (9")]  # fmt: skip
    swaps = [(old, new) for old, new in swaps if old in content[:_DATA]]
    return content.replace(*chance.choice(swaps), 1) if swaps else None


CLASSES: dict[str, Damage] = {
    "bit flip": bit,
    "bit flip at the head": header_bit,
    "zeroed page": zeroed_page,
    "0xFF page": filled_page,
    "all zeros": zeroed,
    "all 0xFF": filled,
    "a number too large": large_number,
    "a number one more": small_step,
    "cut short": cut_short,
    "a byte less": one_less,
    "prolonged": prolonged,
    "empty": empty,
    "another header": other_shape,
}
CHANCE = ("bit flip", "bit flip at the head", "zeroed page", "0xFF page", "a number too large",
          "a number one more", "cut short", "another header")  # fmt: skip
"""Those that differ from time to time."""
