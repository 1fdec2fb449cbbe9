"""Compiling in a process beside this one, which goes on by slower ways until the code is there.

Only a command turns that on, by `compile_beside`, or goes by the slower ways to its end, by
`do_without`; where nobody does, functions are compiled at their first call. The other process fills
the folders that compiled code is kept in, and what it has compiled is found there. It ends with
this one, and one at a time is at work on a machine.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from klsa_search.child_processes import command_of, has_interpreter
from klsa_search.processors import end_with_starter

if TYPE_CHECKING:
    from klsa_search.compiled.keeping import KeptCode

_AGAIN: Final = 0.2
"""Seconds between two looks for code that is not there yet."""


class _Missed(NamedTuple):
    types: tuple[Any, ...]
    looked: float  # when


@dataclass
class _Beside:
    """The other process, and what is known of the code it makes."""

    module: str
    arguments: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    failure: str | None = None
    there: set[Any] = field(default_factory=set)
    missing: dict[Any, _Missed] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        if self.process is None and self.failure is None:
            self.process = subprocess.Popen(
                command_of(self.module, *self.arguments),
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def lacks(self, function: Any, arguments: tuple[Any, ...]) -> bool:
        if function in self.there:
            return False
        with self.lock:
            missed = self.missing.get(function)
            types = (
                missed.types if missed else tuple(map(function.dispatcher.typeof_pyval, arguments))
            )
            lacking = self._lacks(function, types)
            if lacking:
                self.start()
            return lacking

    def still_missing(self) -> list[str]:
        with self.lock:
            missing = [
                each
                for each, missed in list(self.missing.items())
                if self._lacks(each, missed.types)
            ]
        return sorted(each.__name__ for each in missing)

    def _lacks(self, function: Any, types: tuple[Any, ...]) -> bool:
        """Look for the code, unless that was done a moment ago; the lock is held."""
        now, missed = time.monotonic(), self.missing.get(function)
        if missed is not None and now < missed.looked + _AGAIN:
            return True
        cache: KeptCode = function.dispatcher._cache
        if types in function.dispatcher.overloads or cache.holds(types):
            self.there.add(function)
            self.missing.pop(function, None)
            return False
        self.missing[function] = _Missed(types, now)
        ended = self.process.poll() if self.process else None
        if ended is not None and self.failure is None:
            self.failure = (
                f"the compilation process ended with status {ended}; klsa-index warm shows why"
            )
        return True


class _Nobody:
    """Takes the place of the other process where nobody compiles."""

    failure: Final = "slower ways answer one question sooner"

    def lacks(self, function: Any, arguments: tuple[Any, ...]) -> bool:
        return True

    def still_missing(self) -> list[str]:
        return []


_beside: list[_Beside | _Nobody] = []


def do_without() -> None:
    """From now on take the slower way wherever there is one, compiled code or not.

    For a process that answers one question: numba takes longer to load than the slower ways take.
    """
    if not _beside:
        _beside.append(_Nobody())


def compile_beside(module: str, *arguments: str) -> None:
    """From now on answer by slower ways what is not compiled, and compile it beside.

    module     that `python -m` runs to compile, started when something is missed for the first
               time; see `until_forsaken`
    Where no folder keeps compiled code it does nothing: the other process could not hand any on.
    """
    from klsa_search.compiled.keeping import writable_folder

    if not _beside and has_interpreter() and writable_folder() is not None:
        _beside.append(_Beside(module, arguments))


def lacks(function: Any, *arguments: Any) -> bool:
    """Whether a compiled function has no code for such arguments, and somebody else makes it.

    Then its caller takes a slower way. Cost: .2 µs once it is there.
    """
    return bool(_beside) and _beside[0].lacks(function, arguments)


def wait_for(function: Any, *arguments: Any) -> None:
    """Wait until a compiled function has code for such arguments, where somebody else makes it.

    For what has no slower way. Where nobody makes it any more, it is compiled at its first call.
    """
    while lacks(function, *arguments) and _beside[0].failure is None:
        time.sleep(_AGAIN)


def missing() -> tuple[list[str], str | None]:
    """Names of the functions that were missed and are not there yet, and why they will not come."""
    if not _beside:
        return [], None
    return _beside[0].still_missing(), _beside[0].failure


def until_forsaken(last: Callable[[], object] | None = None) -> None:
    """Make this the other process: it ends with the one that started it, and waits its turn.

    last  what is done when it ends so; see `end_with_starter`
    """
    from klsa_search.compiled.keeping import writable_folder

    end_with_starter(last)
    with suppress(OSError):
        os.nice(5)
    folder = writable_folder()
    if folder is not None and os.name == "posix":
        import fcntl

        fcntl.flock(
            os.open(folder / "compiling.lock", os.O_CREAT | os.O_RDWR, 0o600), fcntl.LOCK_EX
        )
