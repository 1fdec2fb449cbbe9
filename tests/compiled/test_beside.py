"""Compiling beside: the same answers before and after, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import klsa_search
from tests.support.waiting import PATIENCE, wait_until

SCRIPT = """
import json, sys, time
from pathlib import Path
from klsa_search.compiled import compiled
from klsa_search.compiled.beside import compile_beside, lacks, missing, wait_for
import slow
compile_beside("slow", *sys.argv[1:])
before = lacks(slow.double, 4)
told = missing()
end = time.monotonic() + 300
while missing()[0] and missing()[1] is None and time.monotonic() < end:
    time.sleep(0.05)
print(json.dumps([before, told, lacks(slow.double, 4), missing()]))
"""
SLOW = """
import sys
from klsa_search.compiled import compiled
from klsa_search.compiled.beside import until_forsaken

@compiled
def double(number):
    return 2 * number

if __name__ == "__main__":
    until_forsaken()
    if sys.argv[1:] == ["fail"]:
        sys.exit(3)
    import slow
    slow.double(4)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(klsa_search.__file__).parents[1])]),
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }

    def run(*arguments, script=SCRIPT):
        command = [sys.executable, "-c", script, *arguments]
        return json.loads(
            subprocess.check_output(command, env=environment, cwd=tmp_path, timeout=PATIENCE)
        )

    return run


def test_what_is_missed_is_compiled_beside_and_found_there(run):
    assert run() == [True, [["double"], None], False, [[], None]]
    assert run() == [False, [[], None], False, [[], None]]


def test_where_the_other_process_fails_the_slower_way_goes_on(run):
    before, _, after, (missing, failure) = run("fail")
    assert (before, after, missing) == (True, True, ["double"])
    assert "status 3" in failure


def test_what_has_no_slower_way_waits_until_it_is_there_or_will_not_come(run):
    begin, _, _ = SCRIPT.partition("before =")
    script = (
        f"{begin}wait_for(slow.double, 4)\nprint(json.dumps([lacks(slow.double, 4), missing()]))"
    )
    lacking, (missing, failure) = run("fail", script=script)
    assert (lacking, missing) == (True, ["double"])
    assert "status 3" in failure
    assert run(script=script) == [False, [[], None]]


def test_nobody_waits_or_starts_a_process_unless_a_command_says_so():
    from klsa_search.compiled import compiled
    from klsa_search.compiled.beside import lacks, missing, wait_for

    assert not lacks(compiled(lambda number: number), 1)
    wait_for(compiled(lambda number: number), 1)
    assert missing() == ([], None)


def test_the_other_process_ends_with_the_one_that_started_it(tmp_path):
    code = (
        "import time; from klsa_search.compiled.beside import until_forsaken; until_forsaken(); "
        "print(1, flush=True); time.sleep(300)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout.readline()
        process.stdin.close()
        assert process.wait(300) == 1


def test_who_ends_before_all_is_compiled_leaves_nothing_behind(tmp_path):
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "NUMBA_CACHE_DIR": str(kept)}
    command = [sys.executable, "-m", "klsa_search.cli.beside"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        wait_until(lambda: any(temporary.iterdir()) and kept.exists())
        process.stdin.close()
        assert process.wait(300) == 1
    assert list(temporary.iterdir()) == []
