"""Arrays of a generation as `.npy` files, memory-mapped on open; terms as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.errors import IndexDamaged

VOCABULARY = "vocabulary.txt"


def write_arrays(generation: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write each array to `<name>.npy`."""
    for name, array in arrays.items():
        np.save(generation / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)


def open_array(generation: Path, name: str) -> npt.NDArray[Any]:
    """Map `<name>.npy` into memory, read-only; IndexDamaged if it is no array file."""
    path = generation / f"{name}.npy"
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise IndexDamaged(
            f"{path} cannot be read ({error}): rebuild the index with klsa-index build"
        ) from error
    # A plain array over the same memory: np.memmap's own indexing is several times slower.
    return np.asarray(mapped)


def has_array(generation: Path, name: str) -> bool:
    """Whether the generation holds that array."""
    return (generation / f"{name}.npy").is_file()


def write_vocabulary(generation: Path, terms: Sequence[str]) -> None:
    """Write the terms, one a line, in order; no term holds a line break."""
    with (generation / VOCABULARY).open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{term}\n" for term in terms)


def read_vocabulary(generation: Path) -> list[str]:
    """Read the terms, in order."""
    text = (generation / VOCABULARY).read_text(encoding="utf-8")
    return text.split("\n")[:-1]
