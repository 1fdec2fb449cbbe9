"""The reference pages contain everything that the code declares."""

from tests.project.test_packaging import PROJECT
from tools.reference_page import COMMANDS, pages


def test_pages_are_as_generated():
    wanted = pages()
    stale = [path.stem for path in wanted if path.read_text(encoding="utf-8") != wanted[path]]
    assert stale == [], "run: python -m tools.reference_page"


def test_every_command_has_a_page():
    assert COMMANDS.keys() == PROJECT["scripts"].keys()
