"""What intrinsics write LLVM code with, imported when it is first asked for.

Asked for by its full name, as in `llvm.ir.Constant`: a module that imported the names themselves
would load numba, whether or not anything is compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.np import arrayobj

__all__ = ["arrayobj", "cgutils", "ir", "types"]

_HOMES: Final = {
    "arrayobj": "numba.np.arrayobj",
    "cgutils": "numba.core.cgutils",
    "ir": "llvmlite.ir",
    "types": "numba.core.types",
}


def __getattr__(name: str) -> Any:
    # Never kept in this module: what compiled code is made of is told by what stands in it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(_HOMES[name])
