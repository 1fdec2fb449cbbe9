"""klsa-index plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import unread_text
from klsa_search.cli.main import debug_option
from klsa_search.cli.options import (
    chosen_settings,
    config_option,
    json_option,
    memory_option,
    preset_option,
    settings_options,
    source_options,
)
from klsa_search.cli.output import echo, in_bytes, write_facts, write_json
from klsa_search.core.progress import format_duration

if TYPE_CHECKING:
    from klsa_search.indexing.plan import Plan


@click.command("plan")
@click.argument("source", required=False)
@click.option(
    "--documents", type=click.IntRange(1), help="Plan for this many documents, without SOURCE"
)
@click.option(
    "--words", type=click.IntRange(1), help="Assume this many words in a document, on average"
)
@memory_option
@config_option
@preset_option
@source_options
@settings_options()
@json_option
@debug_option
def plan(
    source: Any,
    documents: int | None,
    words: int | None,
    memory: str | None,
    config: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the memory, time and disk that a build takes, and the service of its index.

    Reads the first documents of SOURCE; other arguments are those of klsa-index build. Without
    SOURCE, give --documents and --words: sizes are then those of English texts. Builds nothing.
    """
    settings = chosen_settings(config, options)
    from klsa_search.indexing.plan import plan as planned
    from klsa_search.indexing.plan import plan_of_size

    if source is not None and (documents or words):
        raise click.UsageError("--documents and --words replace SOURCE; give one or the other")
    if source is not None:
        plan = planned(source, memory=memory, **reading, **settings)
    elif documents and words:
        plan = plan_of_size(documents, words, memory=memory, **reading, **settings)
    else:
        raise click.UsageError("give SOURCE, or --documents and --words")
    if as_json:
        write_json(plan.as_json())
    else:
        _write(plan)


def _write(plan: Plan) -> None:
    size = plan.size
    about = "" if size.documents == size.sampled else "about "
    sampled = f", {size.sampled:,} of them read" if size.sampled else ""
    write_facts(
        [
            ("source", plan.source),
            ("documents", f"{about}{size.documents:,}{sampled}"),
            *([("passages", f"about {size.passages:,}")] if size.passages else []),
            ("bytes", f"{about}{in_bytes(size.bytes)}"),
            *([("not read", unread_text(plan.unread))] if plan.unread.count else []),
        ]
    )
    echo()
    write_facts(
        [
            ("memory of the build", f"about {in_bytes(plan.peak_memory)}"),
            ("processor time", f"about {format_duration(plan.seconds)}"),
            ("disk", f"about {in_bytes(plan.disk)}"),
            ("memory of the service", f"about {in_bytes(plan.serving_memory)} for one process"),
            ("searches per second", f"about {plan.searches_per_second:,}"),
        ]
    )
    if not plan.fits:
        echo()
        echo(
            f"warning: the memory limit of {in_bytes(plan.budget)} is too small for one partition; "
            "raise --memory, or klsa-index build divides the documents"
        )
