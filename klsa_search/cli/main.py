"""Groups of commands, and running one: logging, errors and exit codes.

0    success
1    failure, explained in one sentence on stderr
2    wrong usage: an argument, option or setting outside its limits
130  interrupted from the keyboard
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, Final, NoReturn

import click

from klsa_search.cli.output import echo, printable
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError, KlsaError, QueryError, SettingsError
from klsa_search.storage import files

TOKENIZERS: Final = "KLSA_TOKENIZERS"
"""Environment variable: tokenizers that indexes may name, separated by blanks."""

_NEXT_STEPS = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.EADDRINUSE: "choose another port with --port",
}


_MAY_BE_TEXT: Final = re.compile(r"-[^\W\d_]{2}")
"""Start of an argument with one hyphen that is not an option of one letter, as -k or -k5."""


@dataclass
class Invocation:
    """The options of an invocation that `run` reads; the context object of click."""

    debug: bool = False


def _store_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Invocation).debug = True


_DEBUG: Final = click.Option(
    ["--debug"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_store_debug,
    help="Show the traceback of errors",
)


class Command(click.Command):
    """A command with --debug, for `run`; its help shows the defaults of its options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.context_settings["show_default"] = True
        self.params.append(_DEBUG)


class Group(click.Group):
    """A group of such commands, with --debug for them too."""

    command_class = Command

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params.append(_DEBUG)


@click.group(cls=Group)
@click.version_option(package_name="klsa-search")
def klsa_index() -> None:
    """Build and maintain indexes."""


@click.group(cls=Group)
@click.version_option(package_name="klsa-search")
def klsa_eval() -> None:
    """Measure rankings on collections with relevance judgements."""


def run(command: click.Command, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit; `arguments` are by default those of sys.argv.

    Log records go to stderr as text. Each KlsaError, OSError and MemoryError becomes one sentence
    on stderr; so do unexpected exceptions, by `sys.excepthook`. --debug shows the traceback.
    """
    log_as_text()
    invocation = Invocation()
    sys.excepthook = exception_hook(invocation)
    trust_tokenizers()
    try:
        code = command.main(
            args=None if arguments is None else list(arguments),
            standalone_mode=False,
            obj=invocation,
            help_option_names=["-h", "--help"],
        )
    except click.exceptions.Abort as abort:
        # click turns Ctrl-C into Abort; without that cause, a confirmation was declined.
        interrupted = isinstance(abort.__cause__, KeyboardInterrupt)
        echo("interrupted" if interrupted else "nothing was done", err=True)
        sys.exit(130 if interrupted else 1)
    except click.ClickException as wrong:
        for line in _shown(wrong, sys.argv[1:] if arguments is None else arguments):
            echo(line, err=True)
        sys.exit(wrong.exit_code)
    except (KlsaError, OSError, MemoryError) as failure:
        if invocation.debug:
            raise
        echo(f"error: {explain(failure)}", err=True)
        # The error of a missing index or document has a field too, and is not wrong usage.
        is_wrong_usage = (
            isinstance(failure, SettingsError | QueryError | CollectionError)
            and failure.field is not None
        )
        sys.exit(2 if is_wrong_usage else 1)
    sys.exit(code if isinstance(code, int) else 0)


def _shown(wrong: click.ClickException, arguments: Sequence[str]) -> list[str]:
    """Return the lines that click shows for wrong usage, with an error in the form of others."""
    lines = io.StringIO()
    wrong.show(lines)
    message = wrong.format_message()
    error = message if message[:2].isupper() else message[:1].lower() + message[1:]
    if isinstance(wrong, click.NoSuchOption | click.BadParameter):
        text = next(filter(_MAY_BE_TEXT.match, arguments), None)
        if text is not None and "--" not in arguments:
            error = f"{error.rstrip('.')}; write -- before {text!r} if it is a text"
    if isinstance(wrong, click.NoSuchOption):
        from klsa_search.core.config import Settings

        setting = Settings.model_fields.get(wrong.option_name.lstrip("-").replace("-", "_"))
        if setting is not None:
            value = "" if setting.annotation is bool else " VALUE"
            error = f"no such option {wrong.option_name!r}, which is a setting of the index; "
            error += f"change it with `klsa-index refit NAME {wrong.option_name}{value}`"
    return lines.getvalue().replace(f"Error: {message}", f"error: {error}").splitlines()


def log_as_text() -> None:
    """Log to stderr as text, unless logging is configured already."""
    handler = logging.StreamHandler()
    handler.setFormatter(SentenceFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class SentenceFormatter(logging.Formatter):
    """Formats a record as its message, followed by its traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return "\n".join(map(printable, super().format(record).splitlines()))


def trust_tokenizers() -> None:
    """Allow this process to import the tokenizers that the environment names."""
    if names := os.environ.get(TOKENIZERS, "").split():
        from klsa_search.analysis.tokenizers import trust

        for name in names:
            trust(name)


def explain(failure: KlsaError | OSError | MemoryError) -> str:
    """Return a failure as one sentence: the thing, the fact and the next step."""
    if isinstance(failure, KlsaError):
        before = f" (added before: {counted(failure.added, 'document')})" if failure.added else ""
        return failure.message + before
    if isinstance(failure, MemoryError):
        return "out of memory; free memory, or use a smaller collection"
    step = _NEXT_STEPS.get(failure.errno or 0, "run the command again with --debug to see where")
    return files.explain(failure, "the system", step)


def exception_hook(invocation: Invocation) -> Callable[..., None]:
    """Return an excepthook that prints one line for an unexpected exception."""

    def hook(kind: type[BaseException], failure: BaseException, traceback: Any) -> None:
        if invocation.debug:
            for line in "".join(format_exception(kind, failure, traceback)).splitlines():
                echo(line, err=True)
        else:
            sentence = f"error: internal error (a bug): {kind.__name__}: {failure}; "
            echo(sentence + "run it again with --debug, and report the output", err=True)

    return hook
