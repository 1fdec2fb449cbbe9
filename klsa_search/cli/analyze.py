"""klsa-index analyze: the terms a text is indexed under."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import chosen_settings, home_option, json_option, settings_options
from klsa_search.cli.output import Column, echo, write_json, write_table
from klsa_search.config import AnalysisSettings


@click.command()
@click.argument("text")
@click.option("--name", help="Use the analysis settings of this index; excludes setting options")
@home_option
@settings_options(*AnalysisSettings.model_fields)
@json_option
@debug_option
def analyze(text: str, name: str | None, home: Path, as_json: bool, **options: Any) -> None:
    """Show the terms of TEXT, as it is indexed, and their positions."""
    settings = chosen_settings(None, options)
    if name is not None and settings:
        raise click.UsageError(
            "--name and setting options exclude each other: give one or the other"
        )
    from klsa_search.analysis import Analyzer
    from klsa_search.analysis.tokenizers import trusting
    from klsa_search.store.current import current_generation
    from klsa_search.store.manifest import read_manifest
    from klsa_search.store.names import index_path

    analysis: AnalysisSettings = AnalysisSettings.checked(trusting(settings))
    if name is not None:
        manifest = read_manifest(current_generation(index_path(home, name)))
        analysis = manifest.checked_settings()
    tokens = Analyzer(analysis).tokens(text)
    if as_json:
        names = ("term", "position", "start", "end")
        write_json([{name: getattr(token, name) for name in names} for token in tokens])
    elif not tokens:
        echo("no terms: the analyser removed every word")
    else:
        columns = [Column("position", right=True), Column("term"), Column("text")]
        rows = [(str(t.position), t.term, text[t.start : t.end]) for t in tokens]
        write_table(columns, rows)
