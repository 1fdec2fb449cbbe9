"""The module as a whole: its descriptions and the choice of the instruction set."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from klsa_search import _native
from tests.support.processes import run


def public(things):
    return {name: value for name, value in vars(things).items() if not name.startswith("_")}


def test_everything_is_described():
    for name, value in public(_native).items():
        functions = {name: value}
        if isinstance(value, type):
            assert value.__doc__, name
            methods = public(value).items()
            functions = {f"{name}.{method}": each for method, each in methods if callable(each)}
        for function, each in functions.items():
            assert "\n\n" in each.__doc__, function  # after the signature


def test_stub_has_types_of_arrays_and_of_objects():
    path = Path(_native.__file__).with_name("_native.pyi")
    if not path.exists():
        pytest.skip("a module that checks itself has no stub")
    tree = ast.parse(path.read_text())
    loose = {"object", "list", "dict", "tuple", "Callable", "Any"}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for type_ in [*(each.annotation for each in function.args.args), function.returns]:
            assert getattr(type_, "id", None) not in loose, function.name


def test_unsupported_instruction_set_is_refused():
    with pytest.raises(ValueError, match="`sse9` is not an instruction set of this processor"):
        _native.select_instruction_set("sse9")


def test_tests_run_with_all_instruction_sets():
    sets = _native.instruction_sets()
    assert sets[0] == "baseline", "compiled for this machine alone; run `make test`"


def test_largest_instruction_set_is_active():
    largest = _native.instruction_sets()[-1]
    assert _native.select_instruction_set(largest) == largest


# Of AVX, AVX-512 and BMI; tzcnt, which older processors read as bsf, is in any code.
ADVANCED = re.compile(
    r"\t(v|k|andn\s|bextr|bls|bzhi|lzcnt|mulx|pdep|pext\s|popcnt|rorx|s[ah][lr]x)"
)


def test_only_functions_that_are_chosen_have_instructions_of_larger_sets():
    """The linker takes a function that files share from one of them: it must run everywhere."""
    folder = Path(_native.__file__).parents[1] / f"build/native-{sys.implementation.cache_tag}"
    if not (shutil.which("objdump") and (folder / "avx512.o").exists()):
        pytest.skip("needs objdump, and the objects of an in-place build")
    disassembled = ["objdump", "--disassemble", "--no-show-raw-insn", *folder.glob("*.o")]
    for line in run(*disassembled).stdout.splitlines():
        if line.endswith(">:"):
            function = line
        elif ADVANCED.search(line):
            assert re.search("4klsa(4avx2|6avx512)", function), line


SUMS_UNTIL_THE_END = """
import threading, time
import numpy as np
from klsa_search import _native

features = _native.Features(np.zeros(2**20, np.int32), np.ones(2**20), 1)
starts, ones, sums = np.array([0, 2**20]), np.ones((1, 1)), np.zeros((1, 1))
running = threading.Event()

def add():
    while True:
        features.add_to_features(starts[:1], starts[1:], ones, sums)
        running.set()

threading.Thread(target=add, daemon=True).start()
running.wait()
"""


@pytest.mark.slow
def test_the_interpreter_ends_while_a_daemon_thread_is_in_the_module():
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SUMS_UNTIL_THE_END], capture_output=True, timeout=600
        )
        assert (done.returncode, done.stderr) == (0, b"")
