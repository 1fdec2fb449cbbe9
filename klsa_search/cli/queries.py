"""klsa-index analyze, settings, synonyms, rules, judgements, analytics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from klsa_search.cli.describe import settings_rows
from klsa_search.cli.main import klsa_index
from klsa_search.cli.options import (
    FILE,
    chosen_settings,
    home_option,
    index_argument,
    json_option,
    opened_index,
    settings_options,
    text_of_file,
    without_none,
)
from klsa_search.cli.output import (
    Columns,
    echo,
    make_folders,
    numbers,
    wrapped,
    write_facts,
    write_json,
    write_list,
    write_table,
)
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.service_reports import ListName
from klsa_search.core.wording import counted
from klsa_search.errors import SettingsError

if TYPE_CHECKING:
    from klsa_search.core.service_reports import Analytics
    from klsa_search.search.index import Index


@klsa_index.command()
@click.argument("text")
@click.option(
    "--name",
    help="Use the analysis settings of this index; cannot be combined with options of settings",
)
@home_option
@settings_options(*AnalysisSettings.model_fields)
@json_option
def analyze(text: str, name: str | None, home: Path, as_json: bool, **options: Any) -> None:
    """Show the terms of TEXT, as it is indexed, and their positions."""
    chosen = chosen_settings(None, options)
    if name is not None and chosen:
        raise click.UsageError(
            "--name and setting options exclude each other: give one or the other"
        )
    from klsa_search.analysis.analyzer import Analyzer
    from klsa_search.analysis.tokenizers import with_trusted_tokenizer
    from klsa_search.storage.current import current_build
    from klsa_search.storage.manifest import read_manifest
    from klsa_search.storage.names import index_path

    analysis: AnalysisSettings = AnalysisSettings.checked(with_trusted_tokenizer(chosen))
    if name is not None:
        manifest = read_manifest(current_build(index_path(home, name)))
        analysis = manifest.checked_settings()
    tokens = Analyzer(analysis).tokens(text)
    rows = [(str(token.position), token.term, text[token.start : token.end]) for token in tokens]
    columns: Columns = [*numbers("position"), "term", "text"]
    nothing = "no terms: the analyser removed every word"
    write_list(as_json, [token._asdict() for token in tokens], columns, rows, nothing)


@klsa_index.command()
@index_argument
@settings_options(*(n for n in Settings.model_fields if n in QUERY_SETTINGS), default="unchanged")
@click.option("--reset", is_flag=True, help="Return to the settings of the build")
@json_option
def settings(path: Path, reset: bool, as_json: bool, **options: Any) -> None:
    """Change settings that only queries use, or show all settings.

    Changes take effect at once and survive rebuilds. klsa-index refit changes other settings.
    """
    from klsa_search.search.configuration import change_settings
    from klsa_search.storage.aliases import followed
    from klsa_search.storage.current import current_build
    from klsa_search.storage.manifest import current_settings, read_manifest

    changes = without_none(options)
    if reset and changes:
        raise click.UsageError("--reset and settings exclude each other: give one of them")
    target = followed(path)
    if reset or changes:
        settings = change_settings(target, None if reset else changes)
    else:
        generation = current_build(target)
        settings = current_settings(generation, read_manifest(generation))
    if as_json:
        write_json(settings.model_dump(mode="json"))
    elif reset:
        echo(f"{path.name}: reset to the settings of the build")
    elif changes:
        echo(f"{path.name}: changed {', '.join(changes)}")
    else:
        write_facts(settings_rows(settings))


@klsa_index.command()
@opened_index
@click.argument("file", required=False, type=FILE)
@click.option("--add", is_flag=True, help="Keep the present synonyms, and add those of FILE")
@click.option("--clear", is_flag=True, help="Delete all synonyms")
@json_option
def synonyms(index: Index, file: Path | None, add: bool, clear: bool, as_json: bool) -> None:
    """Set the synonyms of an index from FILE, or list them.

    FILE has one rule per line, "tv, television" or, one way, "phone => iphone, galaxy", or is JSON,
    as {"phone": ["iphone", "galaxy"]}. It replaces all synonyms and takes effect at once.
    """
    from klsa_search.storage.synonyms import synonyms_of_text

    if add and file is None:
        raise click.UsageError("--add needs FILE, the synonyms to add")
    if clear and file is not None:
        raise click.UsageError("FILE and --clear exclude each other: give one of them")
    if clear:
        index.set_synonyms({})
    elif file is not None:
        change = index.add_synonyms if add else index.set_synonyms
        change(synonyms_of_text(text_of_file(file, "synonyms")))
    synonyms = index.synonyms
    if (clear or file is not None) and not as_json:
        echo(f"{index.name}: synonyms of {counted(len(synonyms), 'word')}")
        return
    rows = [(word, ", ".join(replacements)) for word, replacements in synonyms.items()]
    columns = wrapped("word", "synonyms")
    write_list(as_json, synonyms, columns, rows, f"{index.name} has no synonyms")


@klsa_index.command()
@opened_index
@click.argument("file", required=False, type=FILE)
@click.option("--clear", is_flag=True, help="Delete all rules")
@json_option
def rules(index: Index, file: Path | None, clear: bool, as_json: bool) -> None:
    """Set the rules of an index from FILE, or list them.

    Rules pin, hide and boost documents of searches. FILE is a JSON list, as in [{"id": "tyres",
    "when": {"query_is": "tyres"}, "then": {"hide": ["t1"]}}]. It replaces all rules and takes
    effect at once.
    """
    if clear and file is not None:
        raise click.UsageError("FILE and --clear exclude each other: give one of them")
    if clear:
        index.set_rules([])
    elif file is not None:
        try:
            listed = json.loads(file.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise SettingsError(
                f"{file} is not JSON in UTF-8 ({error}); correct it", field="rules"
            ) from None
        index.set_rules(listed)
    rules = index.rules
    if (clear or file is not None) and not as_json:
        echo(f"{index.name}: {counted(len(rules), 'rule')}")
    else:
        shown = ([rule["id"], rule.get("when", {}), rule.get("then", {})] for rule in rules)
        rows = [(id_, _compact(when), _compact(then)) for id_, when, then in shown]
        columns: Columns = ["rule", *wrapped("when", "then")]
        write_list(as_json, rules, columns, rows, f"{index.name} has no rules")
    for warning in index.rule_warnings():
        echo(f"warning: {warning}", err=True)


def _compact(value: object) -> str:
    """Return a value as JSON without braces."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


@klsa_index.command()
@opened_index
@click.option(
    "--out",
    type=FILE,
    help="Write them to this file as TREC qrels, and the queries to a file next to it, with the "
    "suffix .queries.tsv, as lines of number and text",
)
@json_option
def judgements(index: Index, out: Path | None, as_json: bool) -> None:
    """Show the relevance judgements of an index.

    They come from the page of klsa-serve and from index.judge. klsa-eval judgements NAME measures
    rankings by them.
    """
    from klsa_search.collection.queries import qrels_text

    queries = index.judgements.queries()
    if out is not None:
        text, left_out = qrels_text(one for judged in queries for one in judged.judgements())
        make_folders(out)
        out.write_text(text, encoding="utf-8")
        sidecar = out.with_suffix(".queries.tsv")
        sidecar.write_text("".join(judged.as_line() for judged in queries), encoding="utf-8")
        echo(
            f"{index.name}: {counted(text.count(chr(10)), 'judgement')} in {out}, "
            f"{counted(len(queries), 'query', 'queries')} in {sidecar}"
        )
        for one in left_out:
            echo(
                f"warning: {one.document_id!r}, judged {one.grade} for query {one.query_id}, "
                f"was left out of {out}: qrels cannot hold IDs with white space",
                err=True,
            )
        return
    facts = [
        {"number": judged.number, "query": judged.text, "grades": dict(judged.grades)}
        for judged in queries
    ]
    rows = []
    for query in queries:
        relevant = sum(grade > 0 for grade in query.grades.values())
        irrelevant = len(query.grades) - relevant
        rows.append((str(query.number), str(relevant), str(irrelevant), query.text))
    columns: Columns = [*numbers("number", "relevant", "not"), *wrapped("query")]
    write_list(as_json, facts, columns, rows, f"{index.name} has no judgements")


@klsa_index.command()
@index_argument
@click.option("--days", default=30, type=click.IntRange(1, 3650), help="Report this many days")
@click.option(
    "--limit", "-k", default=20, type=click.IntRange(1, 10_000), help="List at most this many rows"
)
@click.option(
    "--min-searches",
    default=2,
    type=click.IntRange(1, 1000),
    help="List queries that were searched this often",
)
@click.option("--list", "list_", type=click.Choice(get_args(ListName)), help="Show one list only")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV; without --list the queries")
def analytics(
    path: Path, days: int, limit: int, min_searches: int, list_: ListName | None, as_csv: bool
) -> None:
    """Show frequent and failing queries that klsa-serve --analytics recorded."""
    from klsa_search.service.analytics import reports
    from klsa_search.storage.aliases import followed
    from klsa_search.storage.current import current_build

    path = followed(path)
    current_build(path)
    analytics = reports.report(path.parent, path.name, days=days, k=limit, least=min_searches)
    if as_csv:
        text = reports.as_csv(analytics, list_ or "queries")
        for line in text.removesuffix("\n").split("\n"):  # a query may have other line ends
            echo(line)
        return
    totals = analytics.totals
    if list_ is None:
        write_facts(
            [
                ("since", analytics.since),
                ("searches", f"{totals.searches:,}"),
                ("without results", f"{totals.no_results:,}"),
                ("with low quality", f"{totals.low_quality:,}"),
                ("clicked", f"{totals.clicked:,} ({_share(totals.click_through)})"),
            ]
        )
    for name in (list_,) if list_ else get_args(ListName):
        echo("")
        _write_list(analytics, name)


def _write_list(analytics: Analytics, name: str) -> None:
    if name == "documents":
        rows = [(document.id, f"{document.clicks:,}") for document in analytics.documents]
        write_table([*wrapped("document"), *numbers("clicks")], rows)
        return
    titles = ("searches", "no results", "low quality", "click-through", "mean position")
    figures = [
        (
            entry.day if name == "days" else entry.query,
            f"{entry.searches:,}",
            f"{entry.no_results:,}",
            f"{entry.low_quality:,}",
            _share(entry.click_through),
            "" if entry.mean_position is None else f"{entry.mean_position:.1f}",
        )
        for entry in getattr(analytics, name)
    ]
    write_table([*wrapped(name.replace("_", " ")), *numbers(*titles)], figures)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}%"
