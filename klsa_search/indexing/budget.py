"""The memory a build may use: what was asked for, or a share of what the machine has."""

from __future__ import annotations

import os
import re
from typing import Final

from klsa_search.cgroups import memory_limit
from klsa_search.errors import SettingsError

SHARE: Final = 0.75
"""Of the memory of the machine, or of its control group, that a build takes by default."""

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|TiB)?")


def memory_budget(memory: str | int | None) -> int:
    """Return the budget in bytes: of "4GiB", a number of bytes, or None for `SHARE` of all.

    SettingsError for anything else.
    """
    if memory is None:
        return int(SHARE * memory_of_machine())
    found = _AMOUNT.fullmatch(str(memory).strip())
    if found is None or not float(found[1]):
        raise SettingsError(
            f"memory = {memory!r} is not an amount of memory; give one such as "
            "4GiB, or a number of bytes",
            field="memory",
        )
    return int(float(found[1]) * _UNITS[found[2] or ""])


def memory_of_machine() -> int:
    """Return the bytes this process may have: all there are, or what its cgroups allow."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    return total if limit is None else min(total, limit)
