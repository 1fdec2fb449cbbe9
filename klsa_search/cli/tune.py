"""klsa-index tune: choose better settings for an index, if they are significantly better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.main import klsa_index
from klsa_search.cli.options import EXISTING_FILE, json_file_option, opened_index
from klsa_search.cli.output import make_folders, write_facts, write_json_file
from klsa_search.core.installation import require
from klsa_search.core.progress import progress_bar

if TYPE_CHECKING:
    from klsa_search.evaluation.tuning import Tuning
    from klsa_search.search.index import Index


@klsa_index.command()
@opened_index
@click.option(
    "--queries",
    type=EXISTING_FILE,
    help="Read queries from this file: JSON lines, lines of ID, tab and text, or TREC topics",
)
@click.option(
    "--qrels",
    type=EXISTING_FILE,
    help="Read judgements from this file: TREC qrels (four columns) or BEIR (three)",
)
@click.option(
    "--measure",
    type=click.Choice(["map", "ndcg@10", "p@10", "recall@1000"]),
    help="Choose by this measure; needs judgements  [default: map]",
)
@click.option("--force", is_flag=True, help="Store the choice even if it is not significant")
@json_file_option
def tune(
    index: Index,
    queries: Path | None,
    qrels: Path | None,
    measure: str | None,
    force: bool,
    json_file: Path | None,
) -> None:
    """Choose better settings for the index NAME.

    The settings are k1, b, spectral, gamma, z, sharpness and alpha.

    With judgements, a choice is evaluated on queries that it was not made from (nested
    cross-validation). Without judgements, documents are split in halves, one of which is the query
    for the other; this evidence is weaker, so only alpha is chosen, and a larger gain is required.

    The choice is stored only if it is significantly better than the settings of the index: as a new
    generation, built from the stored documents. Otherwise the index is not changed.
    """
    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels must be given together")
    if measure is not None and queries is None:
        raise click.UsageError("--measure needs judgements: give --queries and --qrels")
    require("eval")
    make_folders(json_file)
    from klsa_search.collection.queries import read_qrels, read_queries
    from klsa_search.evaluation.tuning import tune as tune_by_judgements
    from klsa_search.evaluation.tuning import tune_by_halves
    from klsa_search.indexing.rewrite import refit

    judged = None
    if queries is not None and qrels is not None:
        judged = read_queries(queries), read_qrels(qrels)
    with progress_bar() as bar:
        if judged is None:
            tuning = tune_by_halves(index, progress=bar)
        else:
            tuning = tune_by_judgements(index, *judged, measure=measure or "map", progress=bar)
        stored = None
        if tuning.changes and (tuning.sure or force):
            stored = refit(index, progress=bar, **tuning.changes).generation
    if json_file is not None:
        write_json_file(json_file, {"index": index.name, **tuning.as_json(), "stored": stored})
    _write(tuning, stored)


def _write(tuning: Tuning, stored: str | None) -> None:
    held_out = tuning.held_out
    kind = "queries made of document halves" if tuning.evidence == "halves" else "judged queries"
    choice = ", ".join(f"{name} = {value}" for name, value in tuning.changes.items())
    gain = f"{held_out.tuned - held_out.default:+.4f}"
    minimum = f"{tuning.margin * held_out.default:+.4f}"
    needed = f"; the lower bound must exceed {minimum}" if tuning.margin else ""
    write_facts(
        [
            ("tried", f"{tuning.candidates} settings on {tuning.queries} {kind}"),
            ("choice", choice or "the settings of the index"),
            ("stability", f"the same choice in {held_out.agreement:.0%} of the folds"),
            (
                "held out",
                f"{tuning.measure} {held_out.default:.4f} before, {held_out.tuned:.4f} after",
            ),
            ("gain", f"{gain}, 95% interval {held_out.low:+.4f} to {held_out.high:+.4f}{needed}"),
            ("p", f"{held_out.p:.4f} by paired randomisation"),
            ("verdict", _verdict(tuning, stored)),
        ]
    )


def _verdict(tuning: Tuning, stored: str | None) -> str:
    if not tuning.changes:
        return "no better settings found: the index was not changed"
    if stored is None:
        return "not significant: the index was not changed"
    sure = "significant" if tuning.sure else "not significant, but forced"
    return f"{sure}: stored as generation {stored}"
