"""The log contains exactly the acknowledged writes after kills and disk errors."""

import os
import random
import resource
import shutil
import subprocess
import sys
import textwrap

import pytest

from klsa_search.collection import Document
from klsa_search.errors import StoreError
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.forked import in_child
from tests.support.waiting import PATIENCE

WRITER = """
import sys
from pathlib import Path
from klsa_search.collection import Document
from klsa_search.storage.write_log_writer import LogWriter

first, text = int(sys.argv[2]), "some text " * 200
with LogWriter(Path(sys.argv[1])) as writer:
    for batch in range(first, 10**9):
        writer.append([Document(id=f"{batch} {n}", text=text) for n in range(batch % 7 + 1)])
        print(batch, flush=True)
"""


def batches_of(log):
    """Numbers of the batches that are there, each whole; and the log checked."""
    assert log.check() == log.last().seq
    found: dict[int, int] = {}
    for row in log.rows():
        batch, n = map(int, row.id.split())
        assert n == found.get(batch, 0)
        found[batch] = n + 1
    assert all(size == batch % 7 + 1 for batch, size in found.items())
    return list(found)


def test_a_killed_writer_leaves_what_was_acknowledged_and_at_most_what_was_in_hand(tmp_path):
    log, told = WriteLog(tmp_path), 0
    for trial in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path), f"{told + 1}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            wanted = random.Random(trial).randrange(1, 200)
            for line in writer.stdout:
                wanted -= 1
                if not wanted:
                    writer.kill()
                told = int(line)
        found = batches_of(log)
        assert found in (list(range(1, told + 1)), list(range(1, told + 2)))
        told = len(found)
    assert told > 100


@pytest.mark.slow
def test_a_writer_killed_while_it_makes_the_log(tmp_path):
    killed = -9
    for trial in range(40):
        if not killed:
            break
        folder = tmp_path / f"{trial}"
        folder.mkdir()
        code = textwrap.dedent(f"""
            import os, sys
            count = 0
            def hook(event, arguments):
                global count
                if event in ("os.rename", "open", "sqlite3.connect", "os.remove"):
                    if any({str(folder)!r} in str(each) for each in arguments):
                        count += 1
                        if count > {trial}:
                            os.kill(os.getpid(), 9)
            from klsa_search.storage.write_log_writer import LogWriter
            from klsa_search.collection import Document
            from pathlib import Path
            sys.addaudithook(hook)
            with LogWriter(Path({str(folder)!r})) as writer:
                writer.append([Document(id="1 0"), Document(id="1 1")])
        """)
        killed = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE).returncode
        assert killed in (0, -9)
        assert batches_of(WriteLog(folder)) == ([] if killed else [1])
        with LogWriter(folder) as writer:
            writer.append([Document(id=f"8 {n}") for n in range(2)])
        assert batches_of(WriteLog(folder)) == ([8] if killed else [1, 8])
    assert not killed


def test_a_full_disk_stops_writing_and_not_reading(tmp_path):
    big = "x" * 20_000
    log = WriteLog(tmp_path)

    def work(length):
        resource.setrlimit(resource.RLIMIT_FSIZE, (length, resource.RLIM_INFINITY))
        told = 0
        with LogWriter(tmp_path) as writer:
            with pytest.raises(StoreError, match=r"free disk space"):
                while True:
                    writer.append([Document(id=f"{told} 0", text=big)])
                    told += 1
            assert [row.id for row in log.rows()] == [f"{n} 0" for n in range(told)]
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
            writer.append([Document(id=f"{told} 0", text=big)])
        assert [row.id for row in log.rows()] == [f"{n} 0" for n in range(told + 1)]

    for length in (0, 100, 5_000, 20_000, 70_000, 200_000, 203_000):
        assert in_child(lambda length=length: work(length)) == 0
        log.check()
        for file in tmp_path.iterdir():
            file.unlink()


FAILING = """
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int fail_syncs = 0;
static int failing(void) { if (fail_syncs > 0) { fail_syncs--; errno = EIO; return 1; } return 0; }
int fdatasync(int fd) { return failing() ? -1 : syscall(SYS_fdatasync, fd); }
int fsync(int fd) { return failing() ? -1 : syscall(SYS_fsync, fd); }
"""


@pytest.mark.parametrize("times", [1, 1000])
def test_a_failing_sync_acknowledges_nothing_and_nothing_of_it_rises(tmp_path, times):
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler, and a loader that puts one function before another")
    source, library, folder = tmp_path / "f.c", tmp_path / "f.so", tmp_path / "log"
    folder.mkdir()
    source.write_text(FAILING)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=PATIENCE
    )
    code = textwrap.dedent(f"""
        import ctypes, os
        from pathlib import Path
        from klsa_search.collection import Document
        from klsa_search.errors import StoreError
        from klsa_search.storage.write_log import WriteLog
        from klsa_search.storage.write_log_writer import LogWriter

        folder = Path({str(folder)!r})
        with LogWriter(folder) as writer:
            writer.append([Document(id="0 0")])
            ctypes.c_int.in_dll(ctypes.CDLL({str(library)!r}), "fail_syncs").value = {times}
            try:
                writer.append([Document(id="lost", text="x" * 20000)])
            except StoreError as error:
                assert "disk I/O error" in error.message, error
            else:
                raise AssertionError("it was acknowledged")
            assert [row.id for row in WriteLog(folder).rows()] == ["0 0"]
            os.kill(os.getpid(), 9)
    """)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, timeout=PATIENCE).returncode
        == -9
    )
    assert batches_of(WriteLog(folder)) == [0]
    with LogWriter(folder) as writer:
        writer.append([Document(id="7 0")])
    assert batches_of(WriteLog(folder)) == [0, 7]
