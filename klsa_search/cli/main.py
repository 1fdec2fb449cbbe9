"""How every command starts, reports progress and fails.

0    done
1    a failure, explained in one sentence on stderr
2    wrong usage: an argument, an option or a setting outside its limits
130  interrupted from the keyboard
"""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, Final, NoReturn, TypeVar

import click

from klsa_search.cli.output import echo, printable
from klsa_search.core.compiling import on_compile
from klsa_search.errors import CollectionError, KlsaError, QueryError, SettingsError


@dataclass
class Compiled:
    """How many functions were compiled, without those that only they call."""

    functions: int = 0


@contextmanager
def watch_compiling(begun: Callable[[str | None], None]) -> Iterator[Compiled]:
    """Call `begun` when something is compiled for the first time, with the folder that keeps it.

    Yield the number of compiled functions; functions loaded from the cache are not counted.
    """
    seen = Compiled()

    def count(folder: str | None) -> None:
        seen.functions += 1
        if seen.functions == 1:
            begun(folder)

    with on_compile(count):
        yield seen


F = TypeVar("F", bound=Callable[..., Any])

TOKENIZERS: Final = "KLSA_TOKENIZERS"
"""Variable of the environment: tokenizers that indexes may name, parted by blanks."""

_NEXT_STEPS = {
    errno.ENOSPC: "free some disk space or choose another folder",
    errno.EDQUOT: "free some disk space or choose another folder",
    errno.EACCES: "check the owner and permissions",
    errno.EPERM: "check the owner and permissions",
    errno.EROFS: "choose a writable folder",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENOMEM: "give the process more memory (ulimit -v)",
    errno.EADDRINUSE: "choose another port with --port",
}


@dataclass
class _Frame:
    """What one invocation was asked for; travels as click's context object."""

    debug: bool = False


def debug_option(function: F) -> F:
    """Decorate a command with --debug, which `run` obeys; the function sees no parameter."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(_Frame).debug = True

    option = click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of errors",
    )
    return option(function)


def run(command: click.Command, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command to its end and leave with the exit code; `arguments` default to sys.argv's.

    What is logged goes to stderr, as sentences.
    Every `KlsaError`, OSError and MemoryError becomes one sentence on stderr. Unexpected exceptions
    do too, through `sys.excepthook`, so that none is caught. --debug shows the traceback.
    """
    log_for_people()
    frame = _Frame()
    sys.excepthook = _hook(frame)
    trust_tokenizers()
    try:
        code = command.main(
            args=None if arguments is None else list(arguments),
            standalone_mode=False,
            obj=frame,
            help_option_names=["-h", "--help"],
        )
    except click.exceptions.Abort as abort:
        # click turns Ctrl-C into Abort; without that cause, a question was answered with no.
        interrupted = isinstance(abort.__cause__, KeyboardInterrupt)
        echo("interrupted" if interrupted else "nothing was done", err=True)
        sys.exit(130 if interrupted else 1)
    except click.ClickException as wrong:
        shown = io.StringIO()
        wrong.show(shown)
        for line in shown.getvalue().splitlines():
            echo(line, err=True)
        sys.exit(wrong.exit_code)
    except (KlsaError, OSError, MemoryError) as failure:
        if frame.debug:
            raise
        echo(f"error: {explain(failure)}", err=True)
        sys.exit(2 if _is_wrong_usage(failure) else 1)
    sys.exit(code if isinstance(code, int) else 0)


def log_for_people() -> None:
    """Write what is logged as sentences to stderr, unless that was decided already."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Sentences())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class _Sentences(logging.Formatter):
    """Messages alone, and where there is one the traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return "\n".join(map(printable, super().format(record).splitlines()))


def trust_tokenizers() -> None:
    """Let this process import the tokenizers that the environment names."""
    if names := os.environ.get(TOKENIZERS, "").split():
        from klsa_search.analysis.tokenizers import trust

        for name in names:
            trust(name)


def explain(failure: KlsaError | OSError | MemoryError) -> str:
    """Put a failure into one sentence: the thing, the fact and the next step."""
    if isinstance(failure, KlsaError):
        return failure.message
    if isinstance(failure, MemoryError):
        return "out of memory; free memory, or use a smaller collection"
    thing = str(failure.filename) if failure.filename is not None else "the system"
    fact = failure.strerror or str(failure) or type(failure).__name__
    step = _NEXT_STEPS.get(failure.errno or 0, "run the command again with --debug to see where")
    return f"{thing}: {fact}; {step}"


def _is_wrong_usage(failure: KlsaError | OSError | MemoryError) -> bool:
    """Tell a value that could never have been right from something that went wrong.

    An index or a document that is not there names its field too, and might have been there.
    """
    kinds = (SettingsError, QueryError, CollectionError)
    return isinstance(failure, kinds) and failure.field is not None


def _hook(frame: _Frame) -> Callable[..., None]:
    """Return the last resort: one line for an unexpected failure."""

    def hook(kind: type[BaseException], failure: BaseException, traceback: Any) -> None:
        if frame.debug:
            for line in "".join(format_exception(kind, failure, traceback)).splitlines():
                echo(line, err=True)
        else:
            sentence = f"error: internal error (a bug): {kind.__name__}: {failure}; "
            echo(sentence + "run it again with --debug, and report the output", err=True)

    return hook
