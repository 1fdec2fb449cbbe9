"""The process that compiles beside a command: see `klsa_search.compiled.beside`.

    python -m klsa_search.cli.beside

Compiles what searching needs, then what writing does, until its standard input ends: that is when
the process that started it does.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from typing import Final

MODULE: Final = "klsa_search.cli.beside"


def main() -> None:
    """Compile."""
    from klsa_search.cli.warm import compile_writing
    from klsa_search.compiled.beside import until_forsaken
    from klsa_search.search.warming import compile_search

    with tempfile.TemporaryDirectory(prefix="klsa-beside-") as folder:
        until_forsaken(partial(shutil.rmtree, folder, ignore_errors=True))
        tempfile.tempdir = folder  # of what is built to be compiled for
        compile_search()
        compile_writing()


if __name__ == "__main__":
    main()
