"""Steps of a build: pure functions from files to files, named by their inputs.

A step writes into a folder of its own on storage that all workers share. The folder's name is a
digest of the function, its arguments and the names of what it reads, so it stands for its content:
where it is there already, nothing is done. It is written aside and renamed, so it is whole or it is
not there. A build that lost its workers, or the process that leads it, goes on where it was by
being started again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

_FACTS = "facts.json"


def mapped(folder: StepResult | Path, name: str) -> npt.NDArray[Any]:
    """Map `<name>.npy` into memory, as an array that could be written, though no file changes.

    So what is compiled for arrays in memory serves these as well.
    """
    path = folder.path if isinstance(folder, StepResult) else folder
    return np.asarray(np.load(path / f"{name}.npy", mmap_mode="c"))


def save(folder: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write each array to `<name>.npy`."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))


def note(folder: Path, **facts: Any) -> None:
    """Write what JSON has, floats to the bit; stays when a folder is emptied of its arrays."""
    (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


def noted(folder: StepResult) -> dict[str, Any]:
    """Read it."""
    facts: dict[str, Any] = json.loads((folder.path / _FACTS).read_text(encoding="utf-8"))
    return facts


_ASIDE: Final = "."


@dataclass(frozen=True)
class StepResult:
    """A folder that a step has written, whole; its name says what it follows from."""

    path: Path

    @property
    def name(self) -> str:
        """The digest it is named by."""
        return self.path.name


Step = Callable[..., None]
"""A function of a module, `step(out, **arguments)`: reads what its arguments name, fills `out`.

Arguments are what JSON has, arrays, folders that were made, and lists and mappings of these.
"""


class Workers(Protocol):
    """Who does the work: processes of this machine, or of many."""

    def each(
        self, function: Callable[..., None], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[int]:
        """Make all calls, each at least once, and give the number of each as it is done."""


class Work:
    """Has steps done by workers, each once, whatever becomes of those that begin them.

    folder   on storage that all workers see under the same path
    workers  that do the steps
    One process at a time leads what is done in a folder.
    """

    def __init__(self, folder: Path, workers: Workers) -> None:
        self._folder, self._workers = folder, workers
        folder.mkdir(parents=True, exist_ok=True)
        for aside in folder.glob(f"{_ASIDE}*"):  # what dead workers left half done
            shutil.rmtree(aside, ignore_errors=True)

    def make(self, step: Step, *calls: Mapping[str, Any]) -> list[StepResult]:
        """Have a step done for each of these arguments, side by side; what is there stays.

        Returns the folders in the order of the calls. What the step raises is raised.
        """
        return self.together(*((step, call) for call in calls))

    def together(self, *calls: tuple[Step, Mapping[str, Any]]) -> list[StepResult]:
        """Have different steps done side by side, as `make` has one."""
        made = [StepResult(self._folder / _name(step, call)) for step, call in calls]
        missing = [
            (step, one.path, call)
            for one, (step, call) in zip(made, calls, strict=True)
            if not one.path.exists()
        ]
        for _ in self._workers.each(perform, missing):
            pass
        return made

    def in_groups(
        self, *groups: Sequence[tuple[Step, Mapping[str, Any]]]
    ) -> list[list[StepResult]]:
        """Have the steps of all groups done side by side, and tell the folders of each group."""
        made = iter(self.together(*chain.from_iterable(groups)))
        return [list(islice(made, len(group))) for group in groups]

    def one(self, step: Step, **arguments: Any) -> StepResult:
        """Have a step done once."""
        return self.make(step, arguments)[0]

    def empty(self, *made: StepResult) -> None:
        """Remove the arrays of folders that no step will read again; that they were made stays.

        So a build that starts again skips them, as long as it asks for the same steps. Small
        facts, in files of other kinds, stay.
        """
        for each in made:
            for array in each.path.glob("*.npy"):
                array.unlink(missing_ok=True)


def perform(step: Step, path: Path, arguments: Mapping[str, Any]) -> None:
    """Do a step, unless its folder is there: aside, then renamed."""
    if path.exists():
        return
    aside = path.with_name(f"{_ASIDE}{path.name}.{uuid.uuid4().hex}")
    aside.mkdir()
    try:
        step(aside, **arguments)
        try:
            aside.rename(path)
        except OSError:
            # Another worker was faster: a call may be made twice.
            if not path.exists():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _name(step: Step, arguments: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{version('klsa-search')} {step.__module__}.{step.__qualname__}\n".encode())
    digest.update(json.dumps(_plain(arguments), sort_keys=True).encode())
    return f"{step.__name__.strip('_')}-{digest.hexdigest()}"


def _plain(value: Any) -> Any:
    """What stands for an argument in the name of what it leads to."""
    if isinstance(value, StepResult):
        return value.name
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        sum_ = hashlib.blake2b(content.data, digest_size=16).hexdigest()
        return [str(content.dtype), list(content.shape), sum_]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value
