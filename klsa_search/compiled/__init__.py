"""Functions compiled by numba, at their first call, and kept on disk where that is possible."""

from klsa_search.compiled.decorators import compiled, inlined, internal, intrinsic

__all__ = ["compiled", "inlined", "internal", "intrinsic"]
