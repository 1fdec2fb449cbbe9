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
_forking = threading.Lock()  # one fork at a time
_making = threading.Lock()  # no lock is made at the very moment of a fork


def lock_free_in_children() -> threading.Lock:
    """Make a lock that a fork waits for; to be held for moments. One may be held within another."""
    lock = threading.Lock()
    with _making:
        _locks.add(lock)
    return lock


def _before() -> None:
    _forking.acquire()
    while True:
        with _making:
            locks = list(_locks)
        _acquire(locks)
        _making.acquire()
        if len(_locks) <= len(locks):  # `locks` keeps all of its own there
            break
        _making.release()
        _release(locks)
    _held.extend(locks)


def _after() -> None:
    _release(_held)
    _held.clear()
    _making.release()
    _forking.release()


def _acquire(locks: list[threading.Lock]) -> None:
    """Acquire all. None is held while another is waited for: who holds that one may want it."""
    first = 0
    while locks:
        locks[first].acquire()
        taken = [locks[first]]
        for number, lock in enumerate(locks):
            if number != first:
                if not lock.acquire(blocking=False):
                    first = number
                    break
                taken.append(lock)
        else:
            return
        _release(taken)


def _release(locks: list[threading.Lock]) -> None:
    for lock in locks:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
