"""Locks that no thread holds at the moment the process forks.

A child has the one thread that forked: a lock that another thread held is never freed there, and
what it guards may be half changed. A fork waits for these locks, and both processes go on with them
free.
"""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []
_forking = threading.Lock()  # one fork at a time, and no lock is made meanwhile


def lock_free_in_children() -> threading.Lock:
    """Make a lock that a fork waits for; to be held for moments, and within no other of them."""
    lock = threading.Lock()
    with _forking:
        _locks.add(lock)
    return lock


def _before() -> None:
    _forking.acquire()
    _held.extend(_locks)
    for lock in _held:
        lock.acquire()


def _after() -> None:
    for lock in _held:
        lock.release()
    _held.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
