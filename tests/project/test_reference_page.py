"""The reference pages contain everything that the code declares."""

import pytest

from tests.project.test_packaging import PROJECT
from tools.reference_page import COMMANDS, pages

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_as_generated(path):
    wanted = PAGES[path]
    assert path.read_text(encoding="utf-8") == wanted, "run: python -m tools.reference_page"


def test_every_command_has_a_page():
    assert COMMANDS.keys() == PROJECT["scripts"].keys()
