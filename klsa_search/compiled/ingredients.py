"""What compiled code is made of, as a digest: equal digests, equal code.

A function is compiled together with all that it refers to: the functions it calls, their constants,
the fields of its named tuples, the intrinsics' own Python. The digest covers what each of these is
now, as bytecode and values, whichever file it stands in; comments, docstrings and the places of
lines are no part of it. Of Python, NumPy, numba and llvmlite themselves the versions count.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from opcode import opmap
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher

from klsa_search.compiled.decorators import Compiled, Intrinsic

_VERSIONS: Final = (
    *("klsa-search 1", sys.version, numba.__version__, llvmlite.__version__, np.__version__),
)
_VERSIONED: Final = {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}
_PLAIN: Final = {NoneType, bool, int, float, complex, str, bytes, EllipsisType}
_IMPORT: Final = opmap["IMPORT_NAME"]


class Unknown(Exception):
    """Something was compiled in that no digest can be made of."""


def digest_of(dispatcher: Dispatcher | Compiled) -> str:
    """Digest a compiled function; Unknown where that cannot be done. Cost: 1 ms, or a few."""
    reader = _Reader()
    reader.value(_VERSIONS)
    reader.value(dispatcher)
    return reader.digest()


def digest_of_call(signature: tuple[types.Type, ...], machine: object) -> str:
    """Digest the types a function is compiled for, and the machine."""
    reader = _Reader()
    for each in signature:
        reader.type(each)
    reader.value(machine)
    return reader.digest()


class _Reader:
    """Reads values into one digest; a function met again is named by its number."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._numbers: dict[FunctionType, int] = {}
        self._inside: list[ModuleType] = []

    def digest(self) -> str:
        """Return the digest of what was read."""
        return self._hash.hexdigest()

    def _say(self, *words: str | bytes) -> None:
        for word in words:
            raw = word.encode(errors="surrogatepass") if isinstance(word, str) else word
            self._hash.update(len(raw).to_bytes(8, "little") + raw)

    def value(self, value: Any, names: frozenset[str] = frozenset()) -> None:
        """Read any value; `names` are those that may be asked of a module."""
        kind = type(value)
        if kind in _PLAIN:
            self._say(f"{kind.__name__} {value!r}")
            return
        self._say(kind.__name__)
        match value:
            case np.generic() | np.ndarray():
                self._say(repr(value.dtype), repr(value.shape), value.tobytes())
            case np.dtype() | np.ufunc():
                self._say(repr(value))
            case types.Type():
                self.type(value)
            case CodeType():
                self._code(value)
            case Dispatcher():
                self.value(value.targetoptions)
                self._function(value.py_func)
            case Compiled():
                self.value(value.targetoptions)
                self._function(value.py_func)
            case Intrinsic():
                self._function(value.py_func)
            case FunctionType():
                self._function(value)
            case ModuleType():
                self._module(value, names)
            case type() | BuiltinFunctionType():
                self._named(value)
            case tuple() | list() | dict() | frozenset():
                self._collection(value)
            case _:
                raise Unknown(f"{value!r} of {kind}")

    def type(self, kind: types.Type) -> None:
        """Read a type of numba's."""
        self._say(type(kind).__name__)
        match kind:
            case types.BaseTuple():
                parts: Any = kind  # numba has no types
                if isinstance(kind, types.BaseNamedTuple):
                    self._named(parts.instance_class)
                for each in parts.types:
                    self.type(each)
            case types.Omitted():
                self.value(kind.value)
            case types.Dispatcher():
                self.value(kind.dispatcher)
            case types.Number() | types.Boolean() | types.Array() | types.NoneType():
                self._say(str(kind))
            case _:
                raise Unknown(f"type {kind}")

    def _named(self, value: Any) -> None:
        """Read classes of named tuples, and of Python's and NumPy's names what they stand for."""
        self._say(str(value.__module__), value.__qualname__)
        if hasattr(value, "_fields"):
            self.value((value._fields, value._field_defaults))
        elif not _versioned(value.__module__):
            raise Unknown(repr(value))

    def _collection(self, value: Any) -> None:
        if hasattr(value, "_fields"):
            self._named(type(value))
        if isinstance(value, dict):
            value = [pair for item in value.items() for pair in item]
        elif isinstance(value, frozenset):
            value = sorted(value, key=repr)
        self._say(str(len(value)))
        for each in value:
            self.value(each)

    def _function(self, function: FunctionType) -> None:
        if function in self._numbers:
            self._say("again", str(self._numbers[function]))
            return
        self._numbers[function] = len(self._numbers)
        self._say(str(function.__module__), function.__qualname__)
        if _versioned(function.__module__):
            return
        code = function.__code__
        self._code(code, function.__doc__)
        self.value((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            self.value(cell.cell_contents)
        # Names of attributes are among them: one too many does no harm.
        names = frozenset(name for each in _codes(code) for name in each.co_names)
        for name in sorted(names & function.__globals__.keys()):
            self._say(name)
            self.value(function.__globals__[name], names)

    def _code(self, code: CodeType, doc: str | None = None) -> None:
        if _IMPORT in code.co_code[::2]:  # instructions stand at even places
            raise Unknown(f"what {code.co_qualname} imports")
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        self._say(code.co_code, code.co_exceptiontable, repr(names), repr(counts))
        for constant in code.co_consts:
            if constant is not doc or doc is None:
                self.value(constant)

    def _module(self, module: ModuleType, names: frozenset[str]) -> None:
        self._say(module.__name__)
        if _versioned(module.__name__) or module in self._inside:  # modules may hold each other
            return
        self._inside.append(module)
        for name in sorted(names & vars(module).keys()):
            self._say(name)
            self.value(vars(module)[name], names)
        self._inside.pop()


def _versioned(module: str | None) -> bool:
    return (module or "builtins").partition(".")[0] in _VERSIONED


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
