"""Change the code in one place at a time and count which changes the tests notice.

    python -m tools.mutation --sample 30 klsa_search/search/filters/*.py -- tests/search/filters

Each change is made in a copy of the repository, in which the tests after `--` run until the first
failure. A change that no test notices is printed: either it changes nothing that can be observed,
or a test of what it breaks is missing. Costs a run of these tests for each change.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Types and the texts of errors and logs are not behaviour that tests state word by word.
_SKIPPED_FIELDS = {"annotation", "returns", "type_params", "decorator_list"}
_SKIPPED_CODE = ("_logger.", "if TYPE_CHECKING")


def changed_forms(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node may be replaced with."""
    new: ast.AST
    match node:
        case ast.Compare(ops=[first, *_]) if type(first) in _COMPARED:
            new = copy.deepcopy(node)
            new.ops[0] = _COMPARED[type(first)]()
            yield new
        case ast.BinOp(op=op) if type(op) in _COMPUTED:
            yield ast.BinOp(node.left, _COMPUTED[type(op)](), node.right)
        case ast.AugAssign(op=op) if type(op) in _COMPUTED:
            yield ast.AugAssign(node.target, _COMPUTED[type(op)](), node.value)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            new = copy.copy(node)
            new.test = ast.UnaryOp(ast.Not(), node.test)
            yield new
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield ast.Return(None)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            yield ast.Call(ast.Name(_NAMES[name]), node.args, node.keywords)


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield parent, field and index of all nodes below one that may be replaced."""
    for name, value in ast.iter_fields(node):
        if name in _SKIPPED_FIELDS:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or ast.unparse(child).startswith(_SKIPPED_CODE):
                continue
            yield node, name, index
            if not isinstance(child, ast.Raise):
                yield from places(child)


def mutants(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what is changed and the whole changed text, for each change of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for parent, name, index in list(places(tree)):
        field = getattr(parent, name)
        node = field if index is None else field[index]
        for new in changed_forms(node):
            replace(parent, name, index, new)
            text = ast.unparse(ast.fix_missing_locations(tree))
            replace(parent, name, index, node)
            before, after = (ast.unparse(form).splitlines()[0] for form in (node, new))
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {before}  ->  {after}", text


def replace(parent: ast.AST, name: str, index: int | None, new: ast.AST) -> None:
    """Put a node into a field, or into a place of the list that the field holds."""
    if index is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[index] = new


def copy_repository(folder: Path) -> None:
    """Copy what git lists and the compiled module."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    compiled = [str(path.relative_to(ROOT)) for path in ROOT.glob("klsa_search/_native.*.so")]
    for name in filter(lambda name: (ROOT / name).is_file(), [*listed, *compiled]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def write(file: Path, text: str, number: int) -> None:
    """Write a text with a time of its own, so that Python takes no compiled one for it."""
    file.write_text(text, encoding="utf-8")
    os.utime(file, (number, number))


def passes(folder: Path, tests: list[str], seconds: float) -> bool:
    """Return whether the tests pass within a number of seconds."""
    command = [sys.executable, "-m", "pytest", "-x", "-m", "", "-p", "no:randomly", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False


def main() -> None:
    """Print the changes that survive, and how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=30, help="number of changes to try")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of changes")
    own, tests = sys.argv[1:], []
    if "--" in own:
        own, tests = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    paths = [path.resolve() for path in options.modules]
    found = [(path, *mutant) for path in paths for mutant in mutants(path)]
    chosen = random.Random(options.seed).sample(found, min(options.sample, len(found)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_repository(folder)
        begun = time.monotonic()
        if not passes(folder, tests, 3600):
            sys.exit("the tests fail without a change:\n" + (folder / "output.txt").read_text())
        limit = 60 + 10 * (time.monotonic() - begun)
        killed = 0
        for number, (path, what, text) in enumerate(chosen, 1):
            file = folder / path.relative_to(ROOT)
            original = file.read_text(encoding="utf-8")
            write(file, text, 2 * number)
            noticed = not passes(folder, tests, limit)
            write(file, original, 2 * number + 1)
            killed += noticed
            print("noticed " if noticed else "SURVIVED", what, flush=True)
    print(f"{killed} of {len(chosen)} changes noticed, of {len(found)} possible ones")


if __name__ == "__main__":
    main()
