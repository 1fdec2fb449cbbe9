"""Parsing of files in a child process with limits on memory and time.

Files may be crafted to exhaust memory or time, or to crash a parser. A process that exceeds a limit
ends, the file is refused, and the next file starts another process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.files.content import Content, Section, Unreadable, check_storable
from klsa_search.collection.files.formats import FileFormat
from klsa_search.collection.model import TruncatedFile
from klsa_search.core.child_processes import (
    end,
    end_of,
    exit_with_parent,
    has_interpreter,
    pipes_of_worker,
    read_requests,
    send,
    start_worker,
)
from klsa_search.errors import CollectionError, MissingExtra


class Limits(NamedTuple):
    """Limits for parsing one document.

    memory      bytes of address space, in addition to that of an idle process
    seconds     of processor time, which does not depend on the load of the machine
    characters  of text
    """

    memory: int = 2**30
    seconds: float = 60.0
    characters: int = 2**26


LIMITS: Final = Limits()  # a PDF of 3,000 pages with 16 million characters takes 55 MiB and 10 s


class Sandbox(AbstractContextManager["Sandbox"]):
    """Parses files in a child process, which starts at the first file and is reused.

    A context manager that ends the process. Cost: about 0.3 s per start, 0.2 ms per file.
    """

    def __init__(self) -> None:
        self._limits = LIMITS
        self._process: subprocess.Popen[bytes] | None = None

    def __exit__(self, *failure: object) -> None:
        """End the process."""
        self._end()

    def read(self, kind: FileFormat, path: Path, encoding: str | None) -> Iterator[Content]:
        """Yield the content of a file; Unreadable, TruncatedFile, MissingExtra."""
        try:
            process = self._started()
            send(process, (kind, path, encoding))
        except BrokenPipeError:
            raise self._died() from None
        assert process.stdout is not None
        for line in process.stdout:
            answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
            if not answer.get("reusable", True):
                self._end()
            match answer:
                case {"content": content}:
                    sections = [Section(*section) for section in content.pop("sections")]
                    yield Content(sections=sections, **content)
                case {"unreadable": [kind_of_fault, detail, number]}:
                    raise Unreadable(kind_of_fault, detail, line=number)
                case {"memory": _}:
                    raise Unreadable("takes too much memory", f"more than {self._memory}")
                case {"cut": message}:
                    raise TruncatedFile(message)
                case {"missing": message}:
                    raise MissingExtra(message)
                case {"end": _}:
                    return
        raise self._died()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if not has_interpreter():
                raise CollectionError(
                    "files of this format cannot be read: they are parsed in a "
                    "child process, and this Python has no executable "
                    "(`sys.executable`); run klsa-search with a python command"
                )
            try:
                self._process = start_worker(__name__, without_secrets=True)
            except OSError as error:
                raise CollectionError(
                    "files of this format cannot be read: the process that parses "
                    f"them does not start ({error}); make sure that there is free "
                    "memory"
                ) from error
            send(self._process, self._limits)
        return self._process

    def _end(self) -> int:
        process, self._process = self._process, None
        return end(process) if process else 0

    def _died(self) -> Unreadable:
        code = self._end()
        if code == -signal.SIGPROF:
            return Unreadable(
                "takes too long", f"more than {self._limits.seconds:g} s of processor time"
            )
        return Unreadable(
            "is damaged or takes too much memory",
            f"its parser ended with {end_of(code)}; it may use {self._memory}",
        )

    @property
    def _memory(self) -> str:
        return f"{self._limits.memory >> 20:,} MiB"


def serve() -> None:
    """Run the child process: read `Limits`, then formats and paths, until requests end."""
    exit_with_parent()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the parent may ignore it
    requests, answers = pipes_of_worker()
    received = read_requests(requests)
    limits: Limits = next(received)
    memory_limit = limit_memory(limits.memory)
    for kind, path, encoding in received:
        for answer in _answers(kind, path, encoding, limits):
            if "content" not in answer:
                # Leaked or fragmented memory must not count against the next file.
                answer["reusable"] = _address_space() < memory_limit - limits.memory / 2
            answers.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
            answers.flush()


def _answers(
    kind: FileFormat, path: Path, encoding: str | None, limits: Limits
) -> Iterator[dict[str, Any]]:
    try:
        limit_time(limits.seconds)
        for content in kind.read(path, encoding):
            _check(content, limits.characters)
            yield {"content": asdict(content)}
            limit_time(limits.seconds)
    except Unreadable as fault:
        yield {"unreadable": [fault.kind, fault.detail, fault.line]}
    except TruncatedFile as cut:
        yield {"cut": cut.message}
    except MissingExtra as missing:
        yield {"missing": missing.message}
    except RecursionError:
        yield {"unreadable": ["is nested too deep", "", 1]}
    except MemoryError:
        yield {"memory": True}
    else:
        yield {"end": True}
    finally:
        limit_time(0)


def _check(content: Content, characters: int) -> None:
    """Raise Unreadable for content that no document can contain."""
    if sum(len(section.heading) + len(section.text) for section in content.sections) > characters:
        raise Unreadable("is too large", f"more than {characters:,} characters of text")
    check_storable(content)


def limit_memory(memory: int) -> float:
    """Limit the address space of this process and return the limit in bytes."""
    if sys.platform != "linux":
        return float("inf")
    import resource

    memory_limit = _address_space() + memory
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        memory_limit = min(memory_limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, hard))
    return memory_limit


def _address_space() -> int:
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit_time(seconds: float) -> None:
    """Let SIGPROF end this process after this much processor time; 0 for no limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
