"""A package of compiled code, made in a folder and changed there, imported as it stands now."""

from __future__ import annotations

import importlib
import sys

SOURCES = {
    "__init__": "",
    "constants": """
LEVELS = 3
(A, B) = range(2)
""",
    "parts": """
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from klsa_search.compiled import compiled, inlined, intrinsic
from made.constants import LEVELS

STEP = np.float32(0.5)
ADDED = 100

class Pair(NamedTuple):
    first: int
    second: int

def addend():
    return ir.Constant(ir.IntType(64), ADDED)

@intrinsic
def more(context, number):
    def code(context, builder, signature, values):
        return builder.add(values[0], addend())
    return types.int64(types.int64), code

@compiled
def levels(number, times=1):
    return number * LEVELS * times

@inlined
def last(pair):
    return pair.second
""",
    "whole": """
import numpy as np

from klsa_search.compiled import compiled
from made import constants as s
from made.parts import Pair, STEP, last, levels, more

@compiled
def whole(state, pair):
    \"\"\"Ten thousand of the second, a thousand of a slot.\"\"\"
    # Each part of the package leaves its digits.
    own = Pair(1, 2)
    return (
        more(levels(state[s.B])) + 10_000 * last(pair) + 1_000_000 * last(own) + np.int64(10 * STEP)
    )
""",
}
ANSWER = 2_000_000 + 40_000 + 100 + 3 * 7 + 5


def write(folder, changes=()):
    """Write the package, some texts in it replaced by others: (module, old, new)."""
    sources = dict(SOURCES)
    for module, old, new in changes:
        assert old in sources[module]
        sources[module] = sources[module].replace(old, new)
    (folder / "made").mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        path = folder / "made" / f"{name}.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)


def imported(folder, monkeypatch):
    """Import its modules afresh: the compiled function and the class of its argument."""
    monkeypatch.syspath_prepend(str(folder))
    # A source changed within the second has the time of the bytecode beside it.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in sys.modules if name.split(".")[0] == "made"]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    whole = importlib.import_module("made.whole").whole
    return whole, sys.modules["made.parts"].Pair
