"""The experiments of the kernel papers, done again.

python -m studies.reproduce ionosphere | medline | reuters | diffusion [--help]
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.main import Command, run
from klsa_search.cli.options import FOLDER
from klsa_search.cli.output import numbers, write_json_file, write_table
from klsa_search.core.installation import require
from klsa_search.core.progress import progress_bar
from studies.datasets import datasets_homes, find_dataset, read_ionosphere, read_reuters

if TYPE_CHECKING:
    from klsa_search.core.progress import Progress
    from studies.reproduce.report import Reproduction, Value


@click.command(cls=Command)
@click.argument("name", type=click.Choice(["ionosphere", "medline", "reuters", "diffusion"]))
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    help="Random splits into training and test.  [default: as in the source, 100 or 10]",
)
@click.option(
    "--out", type=FOLDER, help="Also write the table as JSON and the charts as .png to this folder."
)
@click.option(
    "--data",
    type=FOLDER,
    help="Folder that med, ionosphere or reuters21578 lies in.  [default: for med as for klsa-eval "
    "map; for the others $KLSA_DATASETS, ../shared/datasets]",
)
@click.option(
    "--min-df",
    type=click.IntRange(min=1),
    help="Of diffusion: documents that a term is in, at least, to be counted.  [default: 1]",
)
@click.option(
    "--stratified",
    is_flag=True,
    help="Of diffusion: the same share of relevant documents in both parts of a split.",
)
def reproduce(
    name: str,
    splits: int | None,
    out: Path | None,
    data: Path | None,
    min_df: int | None,
    stratified: bool,
) -> None:
    """Do an experiment of the kernel papers again; published and measured figures side by side.

    ionosphere: error of latent semantic kernels against dimension. medline, reuters: F1 of latent
    semantic and Gram-Schmidt kernels against dimension. diffusion: von Neumann and exponential
    kernels on medline, chosen by alignment. Takes minutes; fewer --splits take less.
    """
    asked = _asked(splits=splits, min_df=min_df, stratified=stratified or None)
    if name != "diffusion" and not asked.keys() <= {"splits"}:
        raise click.UsageError("--min-df and --stratified are options of diffusion: name that")
    require("estimators")
    if out is not None:
        require("figures")
        out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as bar:
        done = _reproduced(name, data, asked, bar)
    if out is not None:
        from studies.reproduce.report import draw_chart

        for chart in done.charts:
            draw_chart(chart, out / f"{chart.name}.png")
        write_json_file(out / f"{name}.json", done.as_json())
    _write(done)


def _asked(**options: Any) -> dict[str, Any]:
    """The options that were given; the others are as the experiment has them."""
    return {name: value for name, value in options.items() if value is not None}


def _reproduced(
    name: str, data: Path | None, asked: dict[str, Any], progress: Progress | None
) -> Reproduction:
    from klsa_search.collection import open_collection
    from studies.reproduce.diffusion import reproduce_diffusion
    from studies.reproduce.ionosphere import reproduce_ionosphere
    from studies.reproduce.medline import reproduce_medline
    from studies.reproduce.reuters import reproduce_reuters

    if name == "ionosphere":
        points = read_ionosphere(find_dataset("ionosphere", datasets_homes(data)))
        return reproduce_ionosphere(points, progress=progress, **asked)
    if name == "reuters":
        stories = read_reuters(find_dataset("reuters21578", datasets_homes(data)))
        return reproduce_reuters(stories, progress=progress, **asked)
    collection = open_collection("med", data=data)
    if name == "medline":
        return reproduce_medline(collection, progress=progress, **asked)
    return reproduce_diffusion(collection, progress=progress, **asked)


def _write(done: Reproduction) -> None:
    click.echo(f"{done.name}: {done.source}; mean (standard deviation), splits: {done.splits}")
    click.echo()
    write_table(
        ["task", "kernel", "measure", *numbers("published", "measured")],
        [
            (row.task, row.method, row.measure, _figure(row.published), _figure(row.measured))
            for row in done.rows
        ],
    )
    click.echo()
    for choice in done.choices:
        click.echo(f"- {choice}")


def _figure(value: Value | None) -> str:
    if value is None:
        return ""
    form = ".3f" if value.mean == 0 or value.mean >= 0.001 else ".1e"  # a λ can be small
    return f"{value.mean:{form}} ({value.sd:{form}})"


if __name__ == "__main__":
    run(reproduce)
