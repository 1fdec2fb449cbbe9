"""Groups of commands, and what all commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click


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
