"""File descriptors: each connection takes one, and so does each array of an index that is open.

A process that has none left can neither accept a connection nor take up a new generation, so
connections get what the indexes leave over.
"""

from __future__ import annotations

import os
import resource

MOST = 1000
"""Connections, however many descriptors there are: each may hold an answer that nobody takes."""

FEWEST = 8
"""Connections, however few descriptors there are."""

_SPARE = 64
"""Descriptors that stay free for what is accepted before another connection has made room."""


def raise_limit() -> None:
    """Allow this process as many descriptors as it may allow itself, up to what it can use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16 * MOST if hard == resource.RLIM_INFINITY else min(hard, 16 * MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def accepted_at_once() -> int:
    """Return how many connections are accepted at a time, before room is made for the next.

    Few take long to accept them all, and many may be more than there are descriptors for.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _SPARE if limit == resource.RLIM_INFINITY else max(16, min(_SPARE, limit // 16))


def most_connections(open_now: int) -> int:
    """Return how many connections there may be, given how many there are.

    What is in use for other things, mostly indexes, is kept free once more, for they may all be
    replaced at the same time. OSError where no descriptor is left to count with, and on systems
    that do not list them.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return MOST
    others = len(os.listdir("/dev/fd")) - open_now
    return max(FEWEST, min(MOST, limit - 2 * others - _SPARE))
