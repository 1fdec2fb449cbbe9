"""Arrays and facts in the folders of steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.work import Made

_FACTS = "facts.json"


def mapped(folder: Made | Path, name: str) -> npt.NDArray[Any]:
    """Map `<name>.npy` into memory, as an array that could be written, though no file changes.

    So what is compiled for arrays in memory serves these as well.
    """
    path = folder.path if isinstance(folder, Made) else folder
    return np.asarray(np.load(path / f"{name}.npy", mmap_mode="c"))


def save(folder: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write each array to `<name>.npy`."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))


def note(folder: Path, **facts: Any) -> None:
    """Write what JSON has, floats to the bit; stays when a folder is emptied of its arrays."""
    (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


def noted(folder: Made) -> dict[str, Any]:
    """Read it."""
    facts: dict[str, Any] = json.loads((folder.path / _FACTS).read_text(encoding="utf-8"))
    return facts
