"""Locks that are free whenever the process forks.

A child process has only the thread that forked: a lock that another thread had acquired is never
released there, and the state it guards may be half changed. A fork therefore acquires these locks
first, and both processes release them. To avoid deadlock it uses the order in which threads acquire
them:

1. locks under which functions may be compiled (`lock_free_in_children(compiles=True)`);
2. the locks of the compilers (`hold_at_forks`);
3. short locks, under which nothing is compiled;
4. locks of the standard library, under which none of these is acquired.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - hooks registered before those below run after them
import logging  # noqa: F401 - likewise
import os
import threading
import weakref
from collections.abc import Callable

_compiling: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_short: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_acquirers: list[Callable[[], Callable[[], None]]] = []
_releases: list[Callable[[], None]] = []
"""Functions that release the locks after a fork, in order."""

_forking = threading.Lock()  # one fork at a time
_creating = threading.Lock()  # no lock is created during a fork


def lock_free_in_children(*, compiles: bool = False) -> threading.Lock:
    """Return a new lock that a fork acquires first. Such locks may be nested.

    compiles  whether functions may be compiled under the lock; otherwise it is a short lock
    """
    lock = threading.Lock()
    with _creating:
        (_compiling if compiles else _short).add(lock)
    return lock


def hold_at_forks(acquire: Callable[[], Callable[[], None]]) -> None:
    """Register the lock of a compiler: `acquire` is called before a fork, what it returns after."""
    _acquirers.append(acquire)


def _before() -> None:
    _forking.acquire()
    while True:
        with _creating:
            compiling, short = list(_compiling), list(_short)
        _acquire(compiling)
        releases = [acquire() for acquire in _acquirers]
        _acquire(short)
        _creating.acquire()
        _releases.extend([_creating.release, *(lock.release for lock in short)])
        _releases.extend([*reversed(releases), *(lock.release for lock in compiling)])
        # The lists keep their locks alive, so a longer set has new ones: start over.
        if len(_compiling) <= len(compiling) and len(_short) <= len(short):
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
    """Acquire all; never wait for one with another acquired, which could deadlock."""
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
