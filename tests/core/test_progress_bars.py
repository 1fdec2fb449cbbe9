"""Progress bars are drawn in terminals and notebooks only."""

import builtins
import io
import sys
import types

import pytest

from klsa_search import build
from klsa_search.core.progress import open_progress, progress_bar, silent, steps

DOCUMENTS = [{"id": "w", "text": "a wing in supersonic flow"}, {"id": "b", "text": "bread dough"}]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_without_a_terminal_there_is_no_bar():
    stream = io.StringIO()
    with progress_bar(stream) as bar:
        assert bar is None
    assert stream.getvalue() == ""


def test_a_terminal_sees_the_phases(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with progress_bar(stream) as bar:
        bar("documents", 100, None)
        bar("documents", 1234, 1234)
        bar("eigenvectors", 3, None)
    assert "documents" in stream.getvalue()
    assert "1,234 of 1,234" in stream.getvalue()
    assert "eigenvectors" in stream.getvalue()


def test_a_build_shows_a_bar_with_the_option(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    index = build(DOCUMENTS, name="t", home=tmp_path, progress=True)
    assert "postings" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    index.add([{"id": "s", "text": "sourdough"}], progress=True)
    assert "documents" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    build(DOCUMENTS, name="t", home=tmp_path, replace=True).close()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("progress", [True, False, None])
def test_a_file_has_no_bar(progress, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with open_progress(progress) as report:
        assert report is silent


@pytest.fixture
def cell(monkeypatch):
    """A notebook as far as a bar can tell: what its cell shows, picture after picture."""
    pictures = []

    class Shown:
        def update(self, picture, raw):
            assert raw
            pictures.append(picture["text/plain"])

    def display(picture, raw, display_id):
        assert raw
        assert display_id is True
        pictures.append(picture["text/plain"])
        return Shown()

    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    # As rich asks whether there is one.
    shell = type("ZMQInteractiveShell", (), {})
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell(), raising=False)
    return pictures


def test_a_notebook_has_a_bar_that_stays(cell, tmp_path, capsys):
    build(DOCUMENTS, name="t", home=tmp_path, progress=True).close()
    assert "documents" in cell[-1]
    assert "files" in cell[-1]
    assert "━" in cell[-1]
    assert capsys.readouterr() == ("", "")


def test_a_notebook_has_it_after_a_failure_too(cell):
    def fail():
        with open_progress(True) as report:
            report("documents", 7, 9)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert "7 of 9" in cell[-1]


@pytest.mark.parametrize("total", [3, None])
def test_each_step_reports_how_many_are_done(total):
    told = []
    step = steps(lambda *given: told.append(given), "splits", total)
    for _ in range(3):
        step()
    assert told == [("splits", 1, total), ("splits", 2, total), ("splits", 3, total)]


def test_without_a_callback_nothing_is_reported():
    steps(None, "splits")()
