"""Commands of benchmarks and studies, and a way to run one in a test."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOT_OURS = {
    "benchmarks.peers.worker": "is talked to in JSON by benchmarks.peers",
    "studies.rivals.minilm": "runs in an environment of its own, with the neural encoder",
}
"""What has no --help here, and why."""


def commands():
    """Names for `python -m`, sorted."""
    found = set()
    for path in [*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("studies/**/*.py")]:
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.add(".".join(parts).removesuffix(".__main__"))
    return sorted(found)


def run(module, *arguments):
    """Run `python -m module arguments` in this process; SystemExit passes through."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, *map(str, arguments)])
        patch.setattr(sys, "excepthook", sys.excepthook)
        # A fresh copy of it, as in a process of its own.
        for name in (module, f"{module}.__main__"):
            patch.delitem(sys.modules, name, raising=False)
        runpy.run_module(module, run_name="__main__", alter_sys=False)
