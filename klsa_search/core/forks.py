"""Locks that no thread holds at the moment the process forks.

A child has the one thread that forked: a lock that another thread held is never freed there, and
what it guards may be half changed. A fork waits for these locks, and both processes go on with them
free. It takes them in the order in which threads take them, so that neither waits for the other:

1. locks within which functions may be compiled (`lock_free_in_children(compiles=True)`);
2. the locks of the compilers (`held_at_forks`);
3. locks that are held for moments, within which nothing is compiled;
4. those of the standard library, within which none of these is taken.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - hooks registered before those below run after them
import logging  # noqa: F401 - likewise
import os
import threading
import weakref
from collections.abc import Callable

_compiling: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_of_moments: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_holds: list[Callable[[], Callable[[], None]]] = []
_releases: list[Callable[[], None]] = []
"""What ends a fork, in its order."""

_forking = threading.Lock()  # one fork at a time
_making = threading.Lock()  # no lock is made at the very moment of a fork


def lock_free_in_children(*, compiles: bool = False) -> threading.Lock:
    """Make a lock that a fork waits for. One may be held within another.

    compiles  whether functions may be compiled while it is held; else it is held for moments
    """
    lock = threading.Lock()
    with _making:
        (_compiling if compiles else _of_moments).add(lock)
    return lock


def hold_at_forks(hold: Callable[[], Callable[[], None]]) -> None:
    """Have a fork call this, which waits for compilers, and then what it returned, in both
    processes.
    """
    _holds.append(hold)


def _before() -> None:
    _forking.acquire()
    while True:
        with _making:
            compiling, of_moments = list(_compiling), list(_of_moments)
        _acquire(compiling)
        releases = [hold() for hold in _holds]
        _acquire(of_moments)
        _making.acquire()
        _releases.extend([_making.release, *(lock.release for lock in of_moments)])
        _releases.extend([*reversed(releases), *(lock.release for lock in compiling)])
        # The lists keep all of their own there.
        if len(_compiling) <= len(compiling) and len(_of_moments) <= len(of_moments):
            return
        _release()


def _after() -> None:
    _release()
    _forking.release()


def _release() -> None:
    for release in _releases:
        release()
    _releases.clear()


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
        for lock in taken:
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
