"""One child process that parses the files of all tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from klsa_search.collection.files import reading, sandbox
from klsa_search.collection.files.content import Content, Unreadable
from klsa_search.collection.files.formats import FileFormat
from klsa_search.collection.files.sandbox import Limits, Sandbox
from klsa_search.collection.model import TruncatedFile
from klsa_search.errors import MissingExtra


class KeptSandbox(Sandbox):
    """Outlives its context: to start a process takes 0.2 s, to parse a file of a test 0.2 ms."""

    is_reading = False

    def __exit__(self, *failure: object) -> None:
        """Keep the process."""

    def read(self, kind: FileFormat, path: Path, encoding: str | None) -> Iterator[Content]:
        """Read a file; if not to its end, the process ends, with what it has not sent."""
        self.is_reading, is_answered = True, False
        try:
            # The working directory of the process is that in which it started.
            yield from super().read(kind, path.absolute(), encoding)
            is_answered = True
        except (MissingExtra, TruncatedFile, Unreadable):
            is_answered = True
            raise
        finally:
            if not is_answered:
                self.end()
            self.is_reading = False

    def end(self) -> None:
        """End the process."""
        super().__exit__()


@contextmanager
def one_process() -> Iterator[None]:
    """Read files of all sources in one process, except by limits of a test and at the same time."""
    kept, usual = KeptSandbox(), Limits()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            reading,
            "Sandbox",
            lambda: Sandbox() if kept.is_reading or usual != sandbox.LIMITS else kept,
        )
        yield
    kept.end()
