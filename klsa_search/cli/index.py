"""klsa-index: build indexes and look after them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.analyze import analyze
from klsa_search.cli.frame import debug_option, explain, run
from klsa_search.cli.mine import cluster, duplicates, related
from klsa_search.cli.options import (
    chosen_settings,
    collections_homes,
    config_option,
    data_option,
    home_option,
    json_option,
    memory_option,
    preset_option,
    settings_options,
    source_options,
)
from klsa_search.cli.output import (
    Column,
    in_bytes,
    progress_bar,
    write_facts,
    write_json,
    write_table,
)
from klsa_search.cli.plan import plan
from klsa_search.cli.tune import tune
from klsa_search.config import Settings
from klsa_search.errors import StoreError

if TYPE_CHECKING:
    from klsa_search.store import Manifest


@click.group()
@click.version_option(package_name="klsa-search")
def klsa_index() -> None:
    """Build indexes and look after them."""


klsa_index.add_command(analyze)
klsa_index.add_command(cluster)
klsa_index.add_command(duplicates)
klsa_index.add_command(plan)
klsa_index.add_command(related)
klsa_index.add_command(tune)


def main() -> None:
    """Run klsa-index."""
    run(klsa_index)


@klsa_index.command()
@click.argument("source")
@click.option("--name", required=True, help="Name of the index below the home.")
@home_option
@data_option
@config_option
@preset_option
@source_options
@memory_option
@settings_options()
@json_option
@debug_option
def build(
    source: str,
    name: str,
    home: Path,
    data: Path | None,
    config: Path | None,
    format_: str | None,
    on_error: str,
    memory: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn SOURCE into an index.

    SOURCE is a file or a folder, the name of a collection (cran, cisi, cacm, med), or python-docs.
    An index of that name is replaced when the new one is whole; until then it goes on serving.
    """
    settings = chosen_settings(config, options)
    from klsa_search.collection import open_collection
    from klsa_search.indexing import build as build_index

    collection = open_collection(
        source, format=format_, on_error=on_error, data=collections_homes(data)
    )
    with progress_bar() as bar:
        index = build_index(
            collection, name=name, home=home, progress=bar, memory=memory, **settings
        )
    if not len(index):
        click.echo(f"warning: {source} holds no document, so {name} finds nothing", err=True)
    problems = collection.problems
    with_reasons = {"skipped": {"count": problems.count, "first": problems.reasons}}
    if as_json:
        write_json(_facts_for_programs(index.name, index.manifest) | with_reasons)
        return
    write_facts(_facts(index.name, index.manifest))
    if problems.count:
        click.echo(f"skipped {problems.count:,} bad records; the first reasons:", err=True)
        for reason in problems.reasons:
            click.echo(f"  {reason}", err=True)


@klsa_index.command("list")
@home_option
@json_option
@debug_option
def list_(home: Path, as_json: bool) -> None:
    """List the indexes of the home."""
    from klsa_search.store import indexes_in

    manifests = {path.name: _manifest_or_reason(path) for path in indexes_in(home)}
    if as_json:
        write_json(
            [
                {"name": name, "error": m} if isinstance(m, str) else _facts_for_programs(name, m)
                for name, m in manifests.items()
            ]
        )
    elif not manifests:
        click.echo(f"{home} holds no index")
    else:
        columns = [
            Column("name"),
            Column("documents", right=True),
            Column("size", right=True),
            Column("built"),
            Column("source", wraps=True),
        ]
        rows = [
            (name, "", "", "", f"unusable: {m}")
            if isinstance(m, str)
            else (name, f"{m.counts.documents:,}", in_bytes(m.bytes()), m.build.created, m.source)
            for name, m in manifests.items()
        ]
        write_table(columns, rows)


@klsa_index.command()
@click.argument("name")
@home_option
@json_option
@debug_option
def info(name: str, home: Path, as_json: bool) -> None:
    """Show what an index holds and how it was built."""
    from klsa_search.store import current_generation, index_path, read_manifest

    manifest = read_manifest(current_generation(index_path(home, name)))
    if as_json:
        write_json(_facts_for_programs(name, manifest))
    else:
        write_facts([*_facts(name, manifest), *_settings(manifest.checked_settings())])


@klsa_index.command()
@click.argument("name")
@home_option
@debug_option
def verify(name: str, home: Path) -> None:
    """Read every file of an index and compare its checksum."""
    from klsa_search.store import index_path
    from klsa_search.store import verify as verify_index

    manifest = verify_index(index_path(home, name))
    click.echo(f"{name}: {len(manifest.files)} files, {in_bytes(manifest.bytes())}, all as built")


@klsa_index.command()
@click.argument("name")
@home_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@debug_option
def delete(name: str, home: Path, yes: bool) -> None:
    """Delete an index."""
    from klsa_search.store import delete_index, index_path, indexes_in

    path = index_path(home, name)
    # Whether it is there, not whether it is whole: a damaged index can be deleted too.
    if not yes and path in indexes_in(home):
        click.confirm(f"Delete {path} for good?", abort=True)
    delete_index(path)
    click.echo(f"{path} is deleted")


def _manifest_or_reason(path: Path) -> Manifest | str:
    """Read what an index holds, or tell why it cannot be read, which is no reason to stop."""
    from klsa_search.store import current_generation, read_manifest

    try:
        return read_manifest(current_generation(path))
    except (StoreError, OSError) as failure:
        return explain(failure)


def _facts(name: str, manifest: Manifest) -> list[tuple[str, str]]:
    """Say what an index holds, for people."""
    counts, built = manifest.counts, manifest.build
    spectra = [
        (
            f"spectrum ({label})",
            f"{s.dimensions} eigenvectors, {s.largest:.4g} to {s.smallest:.4g}, "
            f"{s.captured:.0%} of the trace, residual {s.residual:.1e}",
        )
        for label, s in manifest.spectra.items()
    ]
    return [
        ("index", name),
        ("source", manifest.source),
        ("documents", f"{counts.documents:,}"),
        ("terms", f"{counts.terms:,}"),
        ("non-zeros", f"{counts.non_zeros:,}"),
        *spectra,
        ("size", in_bytes(manifest.bytes())),
        ("built", f"{built.created}, in {built.seconds:.1f} s"),
        ("peak memory", in_bytes(built.peak_memory)),
        ("fingerprint", manifest.fingerprint),
    ]


def _settings(settings: Settings) -> list[tuple[str, str]]:
    said = {True: "yes", False: "no"}
    return [
        (name.replace("_", " "), said[value] if isinstance(value, bool) else str(value))
        for name, value in settings.model_dump().items()
    ]


def _facts_for_programs(name: str, manifest: Manifest) -> dict[str, Any]:
    """Say the same for programs: the manifest, without its list of files."""
    facts = manifest.model_dump(exclude={"files"})
    return {"name": name, **facts, "bytes": manifest.bytes()}
