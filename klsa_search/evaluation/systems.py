"""Systems to compare, and their measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from klsa_search.collection.model import Collection, Judgement, Topic
from klsa_search.core.parameters import RankerName
from klsa_search.core.plugins import plugin_names
from klsa_search.core.progress import Progress
from klsa_search.errors import CollectionError
from klsa_search.evaluation.comparison import Comparison, compare
from klsa_search.evaluation.measures import (
    MEASURES,
    Judge,
    RunMeasures,
    rank_best,
    read_run,
    recorded,
)
from klsa_search.search.index import Index
from klsa_search.search.rankers import RANKERS, ranker_of


@dataclass(frozen=True, kw_only=True)
class System:
    """System that is measured: the preset of its index, and the ranker."""

    name: str
    preset: str
    ranker: str


_PAPER = System(name="paper", preset="paper", ranker="klsa")

SYSTEMS = (
    System(name="bm25", preset="default", ranker="bm25"),
    System(name="lsi", preset="default", ranker="lsi"),
    _PAPER,
    System(name="klsa", preset="default", ranker="klsa"),
)
"""Systems of the MAP table, in its order; the first is the baseline."""


def all_systems() -> tuple[System, ...]:
    """Return the systems of a comparison: all rankers on the default index, and the published
    method. Rankers of plug-ins follow those that are built in.
    """
    names = dict.fromkeys((*RANKERS, *plugin_names("ranker")))
    return (*(System(name=name, preset="default", ranker=name) for name in names), _PAPER)


def judge_systems(
    collection: Collection,
    index_of: Callable[[str, RankerName], Index],
    *,
    systems: Sequence[System] = SYSTEMS,
    measures: Sequence[str] = MEASURES,
    run_dir: Path | None = None,
    progress: Progress | None = None,
    note: Callable[[str], object] | None = None,
) -> dict[str, RunMeasures]:
    """Return measures of systems, by name, on the judged queries of a collection.

    index_of  function that returns an index of the collection, for a preset and the ranker with
              which it is built
    run_dir   existing folder to write each run to, as `<collection>.<system>.run`
    progress  called with ("<collection> systems", done, total)
    note      called with a text for judgements whose query or document does not exist

    Raise CollectionError if the collection has no judgements, or none of its queries and documents;
    OSError.
    """
    judgements = collection.judgements()
    judge = Judge(judgements, measures)
    queries = judged_queries(collection, judge)
    measured = {}
    for number, system in enumerate(systems):
        if progress is not None:
            progress(f"{collection.name} systems", number, len(systems))
        # Rankers share indexes, but for LSI.
        built_for: RankerName = "lsi" if ranker_of(system.ranker).scores_by == "lsi" else "klsa"
        index = index_of(system.preset, built_for)
        if number == 0:
            check_judgements(collection.name, judgements, queries, index, note)
        run = rank_best(index, queries, ranker=system.ranker)
        if run_dir is not None:
            path = run_dir / f"{collection.name}.{system.name}.run"
            run = recorded(run, path, tag=system.name)
        measured[system.name] = judge.measure(run)
    if progress is not None:
        progress(f"{collection.name} systems", len(systems), len(systems))
    return measured


def judge_runs(
    collection: Collection, files: Mapping[str, Path], *, measures: Sequence[str] = MEASURES
) -> dict[str, RunMeasures]:
    """Return measures of run files, by name of the system, on the judged queries of a collection.

    A judged query that is missing from a run counts 0. Raise CollectionError for invalid run files,
    for a run without any judged query, and if there are no judgements.
    """
    judge = Judge(collection.judgements(), measures)
    measured = {}
    for name, path in files.items():
        result = judge.measure(read_run(path))
        if not result.answered:
            raise CollectionError(
                f"`{path}` has none of the {len(judge.query_ids)} judged queries "
                f"of {collection.name}; check that it is a run on that collection, "
                "with its query IDs"
            )
        measured[name] = result
    return measured


def judged_queries(collection: Collection, judge: Judge) -> list[Topic]:
    """Return the judged queries, in source order; CollectionError if there are none."""
    queries = collection.queries()
    selected = judge.judged(queries)
    if not selected:
        raise CollectionError(
            f"none of the {len(judge.query_ids):,} judged queries of {collection.name} is among "
            f"its {len(queries):,} queries; compare their IDs, and check the order of the columns "
            "of the judgements: query, document, grade"
        )
    return selected


def check_judgements(
    name: str,
    judgements: Sequence[Judgement],
    queries: Sequence[Topic],
    index: Index,
    note: Callable[[str], object] | None,
) -> None:
    """Report judgements whose query or document does not exist; CollectionError if all do not.

    note  called with a text for each kind; None to report nothing
    """
    texts, documents = {query.id for query in queries}, set(index.ids())
    of_queries = [judgement for judgement in judgements if judgement.query_id in texts]
    ids = {judgement.document_id for judgement in of_queries}
    if documents.isdisjoint(ids):
        raise CollectionError(
            f"none of the {len(ids):,} judged documents of {name} "
            f"is among its {len(documents):,} documents; compare their IDs"
        )
    judged = {judgement.query_id for judgement in judgements}
    missing = [judgement for judgement in of_queries if judgement.document_id not in documents]
    if note is not None and len(judged) > len(texts):
        note(
            f"{len(judged) - len(texts):,} of the {len(judged):,} judged queries of {name} are not "
            "among its queries; they count 0"
        )
    if note is not None and missing:
        relevant = sum(judgement.grade > 0 for judgement in missing)
        note(
            f"{len(missing):,} of the {len(judgements):,} judgements of {name} are of documents "
            f"that it does not contain; {relevant:,} are relevant "
            "and count as not found"
        )


def index_judgements(index: Index) -> tuple[list[Topic], list[Judgement], int]:
    """Return the judged queries of an index, its judgements, and the number of skipped ones.

    Judgements of deleted documents are skipped. Raise CollectionError if there are no others.
    """
    judged = index.judgements.queries()
    live = set(index.ids())
    judgements = [judgement for query in judged for judgement in query.judgements()]
    usable = [judgement for judgement in judgements if judgement.document_id in live]
    if not usable:
        deleted = f", only {len(judgements):,} of deleted documents" if judgements else ""
        raise CollectionError(
            f"index `{index.name}` has no judgements{deleted}; judge hits on its "
            "page, or with index.judge(query, id, grade)"
        )
    queries = [Topic(id=str(item.number), text=item.text) for item in judged]
    return queries, usable, len(judgements) - len(usable)


def compare_rankers(
    index: Index, queries: Sequence[Topic], judgements: Sequence[Judgement], rankers: Sequence[str]
) -> tuple[Mapping[str, RunMeasures], Comparison]:
    """Return measures of rankers of an index, and a comparison of their MAP with that of the first.

    Each ranker returns the best 1,000 documents for each judged query. Raise MissingExtra without
    the extra `eval`.
    """
    judge = Judge(judgements)
    judged = judge.judged(queries)
    measured: dict[str, RunMeasures] = {
        ranker: judge.measure(rank_best(index, judged, ranker=ranker)) for ranker in rankers
    }
    return measured, compare(measured, target=index.name, measure="map", baseline=rankers[0])
