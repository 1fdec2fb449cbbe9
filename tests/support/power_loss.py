"""Simulated power loss: which disks the system calls of a real run may leave at any moment.

    recording = record(program, folder, trace)
    for acknowledged, disk in disks(recording): lay_out(disk, elsewhere)

The program runs under strace. Data is durable once its file is synced, and a name once its folder
is synced. A power failure may lose anything else: data in pages and in any order, names in the
order of their changes, as on a journalling file system.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.processes import run

CALLS = (
    "openat,open,creat,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,ftruncate,truncate,"
    "fallocate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,"
    "linkat,symlink,symlinkat,copy_file_range,sendfile"
)
PAGE = 4096
BYTES = r"(?:\\x[0-9a-f]{2})*"
CALL = re.compile(r"(\d+)\s+(\w+)\((.*)\)\s+= (-?\d+)")
LOG_ID = re.compile(r"(\d+)\s+(\w+\(.*) <unfinished \.\.\.>")
RESUMED = re.compile(r"(\d+)\s+<\.\.\. \w+ resumed>(.*)")

Disk = dict[str, bytes | None]  # by path the content of each file; None for folders


@dataclass(eq=False)
class File:
    """A file: what is durable of it, and what was written since it was synced."""

    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def content(self, keeps) -> bytes:
        """What is there if those pages survive of which `keeps()` says so."""
        found = bytearray(self.durable)
        for offset, data in self.pending:
            if data is None:  # a new length
                if keeps():
                    found[offset:] = b"\0" * max(0, offset - len(found))
                continue
            at = 0
            while at < len(data):
                page = data[at : at + PAGE - (offset + at) % PAGE]
                if keeps():
                    found.extend(b"\0" * (offset + at - len(found)))
                    found[offset + at : offset + at + len(page)] = page
                at += len(page)
        return bytes(found)

    def sync(self) -> None:
        """Make durable what was written."""
        self.durable, self.pending = self.content(lambda: True), []


@dataclass(eq=False)
class Folder:
    """A folder: its names as they are, and as far as they are durable."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)


class Machine:
    """The files below a folder, as a sequence of system calls leaves them in memory and on disk."""

    def __init__(self, root: Path, before: Disk) -> None:
        self.root, self.top = os.fsencode(root), Folder()
        self.acknowledged: list[str] = []
        self._descriptors: dict[int, list] = {}
        self._changes: list[list[tuple[Folder, str, File | Folder | None]]] = []
        for path, content in sorted(before.items()):
            folder, name = self._find(path.split("/"))
            self._change((folder, name, Folder() if content is None else File(content)))
            self._sync(folder)

    def do(self, name: str, given: str, result: int) -> bool:
        """Do a call that succeeded; whether it may have changed what a loss of power leaves."""
        texts = [bytes_of(each) for each in re.findall(f'"({BYTES})"', given)]
        opened = re.match(f"(\\d+)<({BYTES})>", given)
        numbers = [int(each) for each in re.findall(r"(?<=, )-?\d+(?=$|,)", given)]
        ours = opened and self._below(bytes_of(opened[2])) is not None
        known = self._descriptors.get(int(opened[1])) if ours else None
        if name in ("open", "openat", "creat"):
            return self._open(self._path(given, texts[0]), given, result)
        if name in ("dup", "dup2", "dup3") or (name == "fcntl" and "F_DUPFD" in given):
            self._descriptors[result] = known
        elif name == "lseek" and known:
            known[1] = result
        elif name == "write" and known:
            node, at, appends = known
            at = len(node.content(lambda: True)) if appends else at
            node.pending.append((at, texts[0][:result]))
            known[1] = at + result
            return True
        elif name == "pwrite64" and known:
            known[0].pending.append((numbers[-1], texts[0][:result]))
            return True
        elif name == "ftruncate" and known:
            known[0].pending.append((numbers[-1], None))
            return True
        elif name in ("fsync", "fdatasync") and known:
            self._sync(known[0])
            return True
        elif name == "write" and opened and int(opened[1]) == 1:
            self.acknowledged += texts[0][:result].decode().split()
        elif name.startswith(("mkdir", "unlink", "rmdir", "rename", "link")):
            return self._rename(name, given, texts)
        else:
            touched = known or any(self._below(self._path(given, text)) for text in texts[:2])
            assert name in ("fcntl", "lseek", "write") or not touched, f"not known: {name}"
        return False

    def disk(self, names: int, keeps) -> Disk:
        """What is there after so many of the changes of names that are not durable."""
        found: dict[Folder, dict[str, File | Folder]] = {}
        for change in self._changes[:names]:
            for folder, name, node in change:
                held = found.setdefault(folder, dict(folder.durable))
                held.pop(name, None)
                if node is not None:
                    held[name] = node
        disk: Disk = {}

        def walk(folder: Folder, at: str) -> None:
            for name, node in sorted(found.get(folder, folder.durable).items()):
                if isinstance(node, Folder):
                    disk[at + name] = None
                    walk(node, f"{at}{name}/")
                else:
                    disk[at + name] = node.content(keeps)

        walk(self.top, "")
        return disk

    def disks(self, chance: random.Random) -> Iterator[Disk]:
        """Nothing that is not durable; all names and no content; the other way; three by chance."""
        count = len(self._changes)
        yield self.disk(0, lambda: False)
        yield self.disk(count, lambda: False)
        yield self.disk(0, lambda: True)
        for _ in range(3):
            yield self.disk(chance.randint(0, count), lambda: chance.random() < 0.5)

    def _below(self, path: bytes) -> list[str] | None:
        inside = path == self.root or path.startswith(self.root + b"/")
        return os.fsdecode(path[len(self.root) + 1 :]).split("/") if inside else None

    def _path(self, given: str, text: bytes) -> bytes:
        """The whole of a path, which stands behind the descriptor of its folder or behind none."""
        before = given.partition(f'"{hexed(text)}"')[0]
        folders = re.findall(f"<({BYTES})>", before)
        start = bytes_of(folders[-1]) if folders else self.root
        return os.path.normpath(os.path.join(start, text))

    def _find(self, parts: list[str]) -> tuple[Folder, str]:
        folder = self.top
        for part in parts[:-1]:
            inner = folder.names[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, parts[-1]

    def _open(self, path: bytes, given: str, result: int) -> bool:
        self._descriptors.pop(result, None)
        parts = self._below(path)
        if parts is None:
            return False
        if parts == [""]:
            self._descriptors[result] = [self.top, 0, False]
            return False
        folder, name = self._find(parts)
        changed = name not in folder.names
        if changed:
            assert "O_CREAT" in given, given
            self._change((folder, name, File()))
        node = folder.names[name]
        if "O_TRUNC" in given and isinstance(node, File) and not changed:
            node.pending.append((0, None))
            changed = True
        self._descriptors[result] = [node, 0, "O_APPEND" in given]
        return changed

    def _rename(self, name: str, given: str, texts: list[bytes]) -> bool:
        parts = [self._below(self._path(given, text)) for text in texts]
        if parts[0] is None:
            return False
        folder, old = self._find(parts[0])
        if name.startswith("mkdir"):
            self._change((folder, old, Folder()))
        elif name.startswith("rename"):
            assert parts[1] is not None
            self._change((folder, old, None), (*self._find(parts[1]), folder.names[old]))
        elif name.startswith("link"):
            assert parts[1] is not None
            self._change((*self._find(parts[1]), folder.names[old]))
        else:
            self._change((folder, old, None))
        return True

    def _change(self, *change: tuple[Folder, str, File | Folder | None]) -> None:
        for folder, name, node in change:
            folder.names.pop(name, None)
            if node is not None:
                folder.names[name] = node
        self._changes.append(list(change))

    def _sync(self, node: File | Folder) -> None:
        if isinstance(node, File):
            node.sync()
            return
        for change in [each for each in self._changes if any(one[0] is node for one in each)]:
            for folder, name, held in change:
                folder.durable.pop(name, None)
                if held is not None:
                    folder.durable[name] = held
            self._changes.remove(change)

    def in_memory(self) -> Disk:
        """Everything as the programs see it."""
        return self.disk(len(self._changes), lambda: True)


def bytes_of(text: str) -> bytes:
    """What strace writes as \\x2f\\x74."""
    return bytes.fromhex(text.replace("\\x", ""))


def hexed(content: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in content)


@dataclass
class Recording:
    """What a program did in a folder: what was there before, and its calls that succeeded."""

    folder: Path
    before: Disk
    calls: list[tuple[str, str, int]]


def record(program: str, folder: Path, trace: Path) -> Recording:
    """Run a Python program in a folder, below strace, which writes to the file `trace`."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace: apt-get install strace")
    before = as_disk(folder)
    command = [strace, "-f", "-y", "-xx", "-s", str(2**24), "-e", f"trace={CALLS}",
               "-e", "signal=none", "-o", str(trace), sys.executable, "-c", program]  # fmt: skip
    done = run(*command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    calls, begun = [], {}
    with trace.open(encoding="ascii") as lines:
        for line in lines:
            if part := LOG_ID.match(line):
                begun[part[1]] = f"{part[1]}  {part[2]}"
                continue
            part = RESUMED.match(line)
            call = CALL.match(begun.pop(part[1]) + part[2] if part else line)
            if call and int(call[4]) >= 0:
                calls.append((call[2], call[3], int(call[4])))
    return Recording(folder, before, calls)


def disks(recording: Recording, every: int = 1) -> Iterator[tuple[list[str], Disk]]:
    """What was acknowledged, and a disk that may be left then: each one once, after every call.

    every  after one call of so many
    The end is compared with the folder as it is, so that no call is missed.
    """
    machine, chance = Machine(recording.folder, recording.before), random.Random(0)
    seen, changes = set(), 0
    for call in recording.calls:
        if not machine.do(*call):
            continue
        changes += 1
        for disk in machine.disks(chance) if changes % every == 0 else ():
            key = hashlib.sha256(repr((len(machine.acknowledged), disk)).encode()).digest()
            if key not in seen:
                seen.add(key)
                yield list(machine.acknowledged), disk
    found, left = machine.in_memory(), as_disk(recording.folder)
    for name in [name for name in found if name.endswith("-shm")]:
        del found[name], left[name]  # SQLite's, which it maps and makes again
    assert found == left, "the recorded calls do not explain the files"


def as_disk(folder: Path) -> Disk:
    """All that is below a folder."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def lay_out(disk: Disk, folder: Path) -> None:
    """Write a disk into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in disk.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
