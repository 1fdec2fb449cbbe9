"""The child process that compiles for a command: see `klsa_search.core.compiling.compile_in_child`.

    python -m klsa_search.cli.compile_child

Compiles what searches need, then what writes need. It ends when stdin is closed, as it is when the
parent process ends.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from typing import Final

MODULE: Final = "klsa_search.cli.compile_child"


def main() -> None:
    """Compile."""
    from klsa_search.cli.warm import compile_writing
    from klsa_search.core.compiling import run_as_child
    from klsa_search.search.engine.warm_up import compile_search

    with (
        tempfile.TemporaryDirectory(prefix="klsa-beside-") as folder,
        run_as_child(partial(shutil.rmtree, folder, ignore_errors=True)),
    ):
        tempfile.tempdir = folder  # of the small indexes
        compile_search()
        compile_writing()


if __name__ == "__main__":
    main()
