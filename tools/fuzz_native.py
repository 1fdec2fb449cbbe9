"""Call the extension module with damaged arguments: every call must answer or raise an error.

    python -m tools.fuzz_native [--inputs 1000000] [--workers 2] [--seed 0] [--first 0]

Arguments come from real calls: of a build, searches and writes of a small index. Each
input is one of these calls with a few arrays or numbers changed. The objects that a call needs are
made again for each input, and their arguments may be changed, too. A seed always gives the same
inputs.

Use it with a module that checks itself (`make fuzz`): an access outside of an array then ends the
process, and the number of the input is printed. `--first N --inputs 1` repeats input N. Exits with
status 1 at the first crash, hang, or exception that is not in `ALLOWED`.
"""

from __future__ import annotations

import argparse
import inspect
import json
import mmap
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

ALLOWED = (ValueError, TypeError, IndexError, MemoryError)
MOST_BYTES = 20_000  # of a recorded call: small arguments are more inputs a second
MOST_CALLS = 60  # recorded of each function
PATIENCE = 120.0  # seconds after which an input hangs
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
# No larger sizes: AddressSanitizer ends the process where C++ would throw bad_alloc.
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 255, 4096, 65_536)


@dataclass
class Call:
    """A call of the module: `Class.method`, `Class` or a function, with copies of its arguments."""

    name: str
    arguments: list[Any]
    keywords: dict[str, Any]
    owner: Call | None = None

    def size(self) -> int:
        """Return the bytes of the arrays, those of objects included."""
        return sum(each.nbytes for each in _arrays([self]))


@dataclass
class Recorder:
    """Replaces what the module has by Python functions and classes that record calls."""

    module: types.ModuleType
    calls: dict[str, list[Call]] = field(default_factory=dict)
    made: dict[int, tuple[Any, Call]] = field(default_factory=dict)

    def install(self) -> None:
        """Replace functions and classes; modules that import them afterwards get these."""
        for name, value in public(self.module).items():
            replace = self._class_of if inspect.isclass(value) else self._function_of
            setattr(self.module, name, replace(name, value))

    def _copied(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, list | tuple):
            return _like(value, (self._copied(each) for each in value))
        if inspect.ismethod(value):  # objects of methods cannot be sent to a worker
            return json.loads if "JSON" in type(value.__self__).__name__ else str.casefold
        return self.made[id(value)][1] if id(value) in self.made else value

    def _record(self, name: str, owner: Any, arguments: Any, keywords: Any) -> Call:
        call = Call(
            name,
            [self._copied(each) for each in arguments],
            {key: self._copied(value) for key, value in keywords.items()},
            None if owner is None else self.made[id(owner)][1],
        )
        recorded = self.calls.setdefault(name, [])
        if len(recorded) < MOST_CALLS and call.size() <= MOST_BYTES:
            recorded.append(call)
        return call

    def _function_of(self, name: str, function: Any) -> Any:
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            self._record(name, None, arguments, keywords)
            return function(*arguments, **keywords)

        return recorded

    def _class_of(self, name: str, base: Any) -> Any:
        def construct(self_: Any, *arguments: Any, **keywords: Any) -> None:
            # Kept, so that no later object has the same identity.
            self.made[id(self_)] = self_, self._record(name, None, arguments, keywords)
            base.__init__(self_, *arguments, **keywords)

        def method_of(method: str) -> Any:
            def recorded(self_: Any, *arguments: Any, **keywords: Any) -> Any:
                self._record(f"{name}.{method}", self_, arguments, keywords)
                return getattr(base, method)(self_, *arguments, **keywords)

            return recorded

        methods = {name: method_of(name) for name in methods_of(base)}
        for method in methods:
            if type(vars(base)[method]).__name__ == "nb_func":  # not of an object
                recorded = self._function_of(f"{name}.{method}", getattr(base, method))
                methods[method] = staticmethod(recorded)
        return type(name, (base,), {"__init__": construct, **methods})


def public(module: types.ModuleType) -> dict[str, Any]:
    """Return the functions of the module, and the classes that can be called.

    Without functions of instruction sets, and results, which have attributes but no constructor.
    """
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and "instruction_set" not in name
        and not isinstance(value.__init__, types.WrapperDescriptorType)
    }


def methods_of(native: Any) -> list[str]:
    """Return the names of the methods of a class."""
    return [name for name in vars(native) if name[0] != "_" and callable(getattr(native, name))]


def targets(module: types.ModuleType) -> set[str]:
    """Return the names of all that is fuzzed."""
    names = set()
    for name, value in public(module).items():
        names.add(name)
        if inspect.isclass(value):
            names |= {f"{name}.{method}" for method in methods_of(value)}
    return names


def _like(value: list[Any] | tuple[Any, ...], items: Iterable[Any]) -> Any:
    """Return a list, tuple or named tuple of the type of another."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _arrays(values: Any) -> list[np.ndarray[Any, Any]]:
    found, left = [], list(values)
    while left:
        value = left.pop()
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, Call):
            left += [*value.arguments, *value.keywords.values(), value.owner]
    return found


class Mutator:
    """Makes the arguments of input number i from the recorded calls."""

    def __init__(self, calls: list[Call], seed: int) -> None:
        self.calls, self.seed = calls, seed
        self.names = sorted({call.name for call in calls})
        self.by_name = {name: [c for c in calls if c.name == name] for name in self.names}
        self.arrays = _arrays(calls)

    def execute(self, number: int, module: types.ModuleType) -> str:
        """Make an input and call the module with it; return the name of what was called."""
        self.random = random.Random(self.seed << 40 | number)
        sets = module.instruction_sets()
        module.select_instruction_set(sets[number % len(sets)])
        call = self.random.choice(self.by_name[self.random.choice(self.names)])
        # Each value is changed with the same chance: one or two of them on average.
        values = 1 + len(call.arguments) + len(call.keywords)
        if call.owner:
            values += len(call.owner.arguments) + len(call.owner.keywords)
        self.chance = self.random.choice((0.0, 1.0, 1.0, 2.0)) / values
        self._run(call, module)
        return call.name

    def _run(self, call: Call, module: types.ModuleType) -> Any:
        if call.owner is None:
            target = attrgetter(call.name)(module)
        else:
            target = getattr(self._run(call.owner, module), call.name.rpartition(".")[2])
        keywords = {key: self._value(value, module) for key, value in call.keywords.items()}
        return target(*(self._value(each, module) for each in call.arguments), **keywords)

    def _value(self, value: Any, module: types.ModuleType) -> Any:
        if isinstance(value, Call):
            return None if self.random.random() < self.chance / 4 else self._run(value, module)
        if isinstance(value, list | tuple):
            return _like(value, (self._value(each, module) for each in value))
        is_changed = self.random.random() < self.chance
        if isinstance(value, np.ndarray):
            return self._changed_array(value) if is_changed else value.copy()
        if not is_changed or isinstance(value, bool | str | bytes):
            return value
        if isinstance(value, float | np.floating):
            return type(value)(self.random.choice(FLOATS))
        if isinstance(value, int | np.integer):
            near = int(value) + self.random.choice((-2, -1, 1, 2))
            return self.random.choice((near, near, *self.random.choices(NUMBERS, k=2)))
        return value

    def _changed_array(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy with other items, shape, order or type."""
        chance = self.random.random()
        if chance < 0.6:
            return self._other_items(array.copy())
        if chance < 0.75 and array.size:
            rows = self.random.choice((0, 1, len(array) // 2, len(array) - 1))
            return array[:rows].copy()
        if chance < 0.85:
            return np.concatenate([array, array[-self.random.randint(1, 4) :]])
        if chance < 0.95:
            other = self.random.choice(self.arrays)
            is_alike = (other.dtype, other.ndim) == (array.dtype, array.ndim)
            return other.copy() if is_alike else self._other_items(array.copy())
        return self.random.choice(
            (array[::2], array[::-1], array.astype(np.int16), array.reshape(1, -1), None, array.T)
        )

    def _other_items(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Change one to four items of an array in place, or reorder it."""
        items = array.reshape(-1)
        if not items.size:
            return array
        if self.random.random() < 0.1:
            items.sort()
            if self.random.random() < 0.5:
                items[:] = items[::-1].copy()
            return array
        for _ in range(self.random.randint(1, 4)):
            items[self.random.randrange(items.size)] = self._item(items)
        return array

    def _item(self, items: np.ndarray[Any, Any]) -> Any:
        kind = items.dtype
        if kind.kind == "f":
            return self.random.choice(FLOATS)
        if kind.kind == "b":
            return self.random.random() < 0.5
        if kind.kind not in "iu":
            return items[0]
        limits = np.iinfo(kind)
        number = self.random.choice(
            (
                int(items[self.random.randrange(items.size)]) + self.random.choice((-1, 0, 1)),
                self.random.choice(NUMBERS),
                self.random.choice((limits.min, limits.max, limits.max - 1)),
                items.size + self.random.choice((-1, 0, 1)),
                self.random.randint(limits.min, limits.max),
            )
        )
        return min(max(number, limits.min), limits.max)


def record() -> list[Call]:
    """Return calls of every function and method of the module, from the use of a small index.

    Raises LookupError for a function that nothing here calls.
    """
    from klsa_search import _native

    wanted = targets(_native)
    recorder = Recorder(_native)
    recorder.install()
    from tools.fuzz_workload import use_everything

    use_everything()
    recorder.made.clear()
    missing = sorted(name for name in wanted if not recorder.calls.get(name))
    if missing:
        raise LookupError(f"no small call of {', '.join(missing)}: call it in fuzz_workload.py")
    return [call for name in sorted(wanted) for call in recorder.calls[name]]


def work(calls: Path, progress: Path, seed: int, numbers: range) -> None:
    """Execute inputs, and write the number of each before it; print how many answered."""
    from klsa_search import _native

    mutator = Mutator(pickle.loads(calls.read_bytes()), seed)  # noqa: S301 - written by the parent
    answers: Counter[str] = Counter()
    raised: Counter[str] = Counter()
    with progress.open("r+b") as file, mmap.mmap(file.fileno(), 8) as current:
        for number in numbers:
            current[:] = number.to_bytes(8, "little")
            try:
                answers[mutator.execute(number, _native)] += 1
            except ALLOWED as error:
                raised[type(error).__name__] += 1
    print(f"{answers.total():,} answered; raised: {dict(raised)}")
    if never := set(mutator.names) - set(answers):
        print(f"never answered: {', '.join(sorted(never))}")


def fuzz(calls: Path, seed: int, first: int, inputs: int, workers: int) -> int:
    """Run workers, each with every `workers`-th input; return the exit status."""
    folder = calls.parent
    started = time.monotonic()
    children = []
    for worker in range(workers):
        progress = folder / f"progress-{worker}"
        progress.write_bytes(bytes(8))
        numbers = [str(first + worker), str(first + inputs), str(workers)]
        command = [sys.executable, "-P", "-m", "tools.fuzz_native", "--work"]
        child = subprocess.Popen([*command, str(calls), str(progress), str(seed), *numbers])
        children.append((child, progress))
    seen: dict[Path, tuple[bytes, float]] = {}
    try:
        while any(child.poll() is None for child, _ in children):
            time.sleep(0.5)
            for child, progress in children:
                current, now = progress.read_bytes(), time.monotonic()
                if seen.get(progress, (b"", 0.0))[0] != current:
                    seen[progress] = current, now
                if child.poll() is None and now - seen[progress][1] > PATIENCE:
                    child.kill()
                if child.poll():
                    number = int.from_bytes(progress.read_bytes(), "little")
                    print(f"failed: repeat it with --seed {seed} --first {number} --inputs 1")
                    return 1
    finally:
        for child, _ in children:
            child.kill()
            child.wait()
    if failed := [progress for child, progress in children if child.returncode]:
        number = int.from_bytes(failed[0].read_bytes(), "little")
        print(f"failed: repeat it with --seed {seed} --first {number} --inputs 1")
        return 1
    seconds = time.monotonic() - started
    print(f"{inputs:,} inputs without a crash, {inputs / seconds:,.0f} a second")
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Call the extension module with damaged arguments")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--work", nargs=6, help=argparse.SUPPRESS)
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        calls, progress, *numbers = asked.work
        seed, begin, end, step = map(int, numbers)
        work(Path(calls), Path(progress), seed, range(begin, end, step))
        return
    if asked.record:
        asked.record.write_bytes(pickle.dumps(record()))
        return
    with tempfile.TemporaryDirectory(prefix="klsa-fuzz-") as folder:
        calls = Path(folder) / "calls"
        command = [sys.executable, "-P", "-m", "tools.fuzz_native", "--record", str(calls)]
        subprocess.run(command, check=True, env=os.environ | {"KLSA_HOME": folder})
        workers = min(asked.workers, asked.inputs)
        sys.exit(fuzz(calls, asked.seed, asked.first, asked.inputs, workers))


if __name__ == "__main__":
    main()
