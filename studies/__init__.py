"""What was found out, and the commands that find it again: no part of the installed package."""

from __future__ import annotations

import argparse


def command_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command of `studies` or `benchmarks`, described by its docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
