"""klsa-index synonyms: what stands for words in the queries of an index."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, json_option
from klsa_search.cli.output import Column, echo, write_json, write_table


@click.command()
@click.argument("name")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--clear", is_flag=True, help="Remove all synonyms")
@home_option
@json_option
@debug_option
def synonyms(name: str, file: Path | None, clear: bool, home: Path, as_json: bool) -> None:
    """Set the synonyms of an index from FILE, or list them.

    FILE has one rule per line, "tv, television" or, one way, "phone => iphone, galaxy", or is JSON,
    as {"phone": ["iphone", "galaxy"]}. It replaces all synonyms and takes effect at once.
    """
    from klsa_search.errors import SettingsError
    from klsa_search.store.aliases import followed
    from klsa_search.store.current import current_generation
    from klsa_search.store.names import index_path
    from klsa_search.store.synonyms import read_synonyms, synonyms_of_text, write_synonyms

    if clear and file is not None:
        raise click.UsageError("FILE and --clear exclude each other: give one of them")
    path = followed(index_path(home, name))
    current_generation(path)
    if clear:
        write_synonyms(path, {})
    elif file is not None:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise SettingsError(
                f"{file} is not UTF-8 ({error}); save it as UTF-8", field="synonyms"
            ) from None
        write_synonyms(path, synonyms_of_text(text))
    found = read_synonyms(path)
    if as_json:
        write_json(found)
    elif clear or file is not None:
        echo(f"{name}: {len(found):,} words have synonyms")
    elif found:
        rows = [(word, ", ".join(others)) for word, others in found.items()]
        write_table([Column("word", wraps=True), Column("synonyms", wraps=True)], rows)
    else:
        echo(f"{name} has no synonyms")
