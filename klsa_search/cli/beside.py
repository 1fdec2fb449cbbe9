"""The process that compiles beside a command: see `klsa_search.compiled.beside`.

    python -m klsa_search.cli.beside search build

Compiles what searching and building need, in the order they are named, until its standard input
ends: that is when the process that started it does.
"""

from __future__ import annotations

import sys
from typing import Final

MODULE: Final = "klsa_search.cli.beside"


def main(parts: list[str]) -> None:
    """Compile one part after the other."""
    from klsa_search.cli.warm import build_a_few
    from klsa_search.compiled.beside import until_forsaken
    from klsa_search.search.warming import compile_search

    until_forsaken()
    for part in parts:
        {"search": compile_search, "build": build_a_few}[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
