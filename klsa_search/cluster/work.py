"""Steps of a build: pure functions from files to files, named by a digest of their inputs.

A step writes to its own folder, on storage that all workers share. The name of the folder is a
digest of the function, its arguments and the names of its input folders, so a step whose folder
exists is skipped. Folders are written under a temporary name and renamed, so they are complete.
A build that was interrupted is resumed by starting it again.
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


def map_array(folder: StepResult | Path, name: str) -> npt.NDArray[Any]:
    """Map `<name>.npy` into memory, copy-on-write.

    The array is writable, so functions compiled for arrays in memory need not be compiled again.
    """
    path = folder.path if isinstance(folder, StepResult) else folder
    return np.asarray(np.load(path / f"{name}.npy", mmap_mode="c"))


def save(folder: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write each array to `<name>.npy`."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))


def write_facts(folder: Path, **facts: Any) -> None:
    """Write JSON values, with floats exact; they are kept when the arrays are removed."""
    (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


def read_facts(folder: StepResult) -> dict[str, Any]:
    """Return the values written by `write_facts`."""
    facts: dict[str, Any] = json.loads((folder.path / _FACTS).read_text(encoding="utf-8"))
    return facts


_TEMPORARY: Final = "."


@dataclass(frozen=True)
class StepResult:
    """The folder that a step has written; its name is a digest of its inputs."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name


Step = Callable[..., None]
"""A module-level function, `step(out, **arguments)`, that writes files to the folder `out`.

Arguments are JSON values, arrays, step results, and lists and mappings of these.
"""


class Workers(Protocol):
    """Processes of one machine or several that run steps."""

    def each(
        self, function: Callable[..., None], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[int]:
        """Make all calls, each at least once, and yield the number of each as it ends."""


class Work:
    """Runs steps by workers, and skips those that are done.

    folder   folder on storage that all workers see under the same path; one process at a time
             may use it
    workers  processes that run the steps
    """

    def __init__(self, folder: Path, workers: Workers) -> None:
        self._folder, self._workers = folder, workers
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob(f"{_TEMPORARY}*"):  # of workers that died
            shutil.rmtree(partial, ignore_errors=True)

    def make(self, step: Step, *calls: Mapping[str, Any]) -> list[StepResult]:
        """Run a step in parallel for each of these arguments, unless done before.

        Returns the folders in the order of the calls. An exception of the step is raised.
        """
        return self.make_all(*((step, call) for call in calls))

    def make_all(self, *calls: tuple[Step, Mapping[str, Any]]) -> list[StepResult]:
        """Run different steps in parallel: see `make`."""
        results = [StepResult(self._folder / _name(step, call)) for step, call in calls]
        missing = [
            (step, result.path, call)
            for result, (step, call) in zip(results, calls, strict=True)
            if not result.path.exists()
        ]
        for _ in self._workers.each(run_step, missing):
            pass
        return results

    def make_groups(
        self, *groups: Sequence[tuple[Step, Mapping[str, Any]]]
    ) -> list[list[StepResult]]:
        """Run the steps of all groups in parallel; return the folders of each group."""
        results = iter(self.make_all(*chain.from_iterable(groups)))
        return [list(islice(results, len(group))) for group in groups]

    def one(self, step: Step, **arguments: Any) -> StepResult:
        """Run a step once."""
        return self.make(step, arguments)[0]

    def empty(self, *results: StepResult) -> None:
        """Remove arrays that no step will read again; folders and other files stay.

        So a resumed build skips these steps.
        """
        for each in results:
            for array in each.path.glob("*.npy"):
                array.unlink(missing_ok=True)


def run_step(step: Step, path: Path, arguments: Mapping[str, Any]) -> None:
    """Run a step in a temporary folder and rename it, unless its folder exists."""
    if path.exists():
        return
    partial = path.with_name(f"{_TEMPORARY}{path.name}.{uuid.uuid4().hex}")
    partial.mkdir()
    try:
        step(partial, **arguments)
        try:
            partial.rename(path)
        except OSError:
            # A call may be made twice, and another worker may have been faster.
            if not path.exists():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _name(step: Step, arguments: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{version('klsa-search')} {step.__module__}.{step.__qualname__}\n".encode())
    digest.update(json.dumps(_plain(arguments), sort_keys=True).encode())
    return f"{step.__name__.strip('_')}-{digest.hexdigest()}"


def _plain(value: Any) -> Any:
    """Return the JSON value that represents an argument in the digest."""
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
