"""A folder with a module for each name that a child process might import, which records imports."""

import sys
from importlib.metadata import packages_distributions

MARK = """
import os
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "imported.txt"), "a") as file:
    file.write(__name__ + "\\n")
raise ImportError(__name__)
"""


def hostile_folder(parent):
    """Make the folder below `parent` and return it."""
    folder = parent / "hostile"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *packages_distributions(), "klsa_search"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(MARK)
    return folder


def imported_from(folder):
    """Return the names of the modules of the folder that were imported, in order."""
    mark = folder / "imported.txt"
    return mark.read_text().split() if mark.exists() else []
