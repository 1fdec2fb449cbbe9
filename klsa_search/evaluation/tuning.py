"""Tuning of the settings of an index, by judgements or by halves of its documents.

Without judgements, each document is cut in the middle. A query is the title of a document, or its
first words. Relevant to it are the document itself and those whose first halves are most similar to
its own; the second halves are searched. No text is on both sides, so a match means that two texts
on a subject share a word, not that one was copied.

A plain known-item search, in which a title has to find its own document, does not rank settings as
judgements do on cran, cacm or med: it has one relevant document, so expansion can only hurt.

A choice is measured by nested cross-validation: the value of a candidate for a query does not
depend on other queries, so it is arithmetic on one table.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document, Judgement, Topic
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import TEXT, TITLE
from klsa_search.core.progress import Progress
from klsa_search.errors import CollectionError
from klsa_search.evaluation.candidates import Candidate, Table, alphas, draw, measure_candidates
from klsa_search.evaluation.comparison import Differences, randomisation_test
from klsa_search.evaluation.measures import Judge
from klsa_search.indexing.build import build
from klsa_search.search.index import Index
from klsa_search.search.rankers import ranker_of

FEWEST_QUERIES = 4
"""Least number of judged queries to divide into folds; below six, no choice is significant."""
FOLDS = 5  # parts of the queries, each of which is measured with a choice made from the others
REPEATS = 10  # random divisions into folds, which reduce the variance of a single one
RESAMPLES = 10_000  # bootstrap samples of the queries for an interval


@dataclass(frozen=True)
class HeldOut:
    """Result of cross-validation: each query is measured with settings chosen without it.

    default    mean of the settings of the index
    tuned      mean of the chosen settings
    low, high  95% interval of tuned - default, by bootstrap over the queries
    p          p value of the paired randomisation test
    chosen     column that is chosen from all queries
    agreement  share of the folds that chose this column
    """

    default: float
    tuned: float
    low: float
    high: float
    p: float
    chosen: int
    agreement: float


def choose(table: Table) -> int:
    """Return the column with the largest mean gain over the first, minus two standard errors.

    By the mean alone, the luckiest of many candidates would win; its gain also has to be consistent
    over queries. The first column, the default, gains 0 and stays if no other is significantly
    better. table: (Q, C) with Q at least 2.
    """
    gains = table - table[:, :1]
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    return int(np.argmax(gains.mean(axis=0) - 2 * errors))


def cross_validate(table: Table, folds: int, seed: int = 0) -> HeldOut:
    """Divide the queries into folds, choose without each fold, and measure on it; ten times.

    table  (Q, C) with Q at least `FEWEST_QUERIES`
    folds  at least 2; more than Q are Q
    The held-out value of a query is its mean over the ten divisions. The result is deterministic
    for a seed. Cost: O(10 · folds · Q · C).
    """
    size = len(table)
    folds = min(folds, size)
    generator = np.random.default_rng(seed)
    gains = table - table[:, :1]
    differences = np.zeros(size)
    choices: Counter[int] = Counter()
    for _ in range(REPEATS):
        fold_of = generator.permutation(np.arange(size) % folds)
        for fold in range(folds):
            held_out = fold_of == fold
            column = choose(table[~held_out])
            choices[column] += 1
            differences[held_out] += gains[held_out, column]
    differences /= REPEATS
    low, high = bootstrap_interval(differences, seed)
    chosen = choose(table)
    return HeldOut(
        default=float(table[:, 0].mean()),
        tuned=float(table[:, 0].mean() + differences.mean()),
        low=low,
        high=high,
        p=randomisation_test(differences, seed=seed),
        chosen=chosen,
        agreement=choices[chosen] / choices.total(),
    )


def bootstrap_interval(differences: Differences, seed: int = 0) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of the mean of resampled queries [Efron, 1979].

    differences  (Q,)
    Cost: O(10,000 · Q).
    """
    from scipy.stats import bootstrap  # the import takes half a second, so only tuning pays it

    interval = bootstrap(
        (differences,), np.mean, n_resamples=RESAMPLES, batch=1000, method="percentile", rng=seed
    ).confidence_interval
    return float(interval.low), float(interval.high)


QUERIES = 200  # limit of sampled queries
NEAREST = 5  # relevant documents besides the one of the query
MIN_TERMS = 20  # least number of terms of a text to be cut
FIRST_WORDS = 10  # terms of the query if there is no title


@dataclass(frozen=True)
class Halves:
    """The documents that are long enough, in halves, and queries for a sample of them.

    first    title and first half of each
    second   second half of each, with the same IDs, in the same order
    queries  one per sampled document, with its ID
    """

    first: tuple[Document, ...]
    second: tuple[Document, ...]
    queries: tuple[Topic, ...]


def halve(documents: Iterable[Document], analyzer: Analyzer, seed: int = 0) -> Halves:
    """Return the halves of all documents that are long enough, and sampled queries.

    Cost: one pass, and memory for the halves. The sample is deterministic for a seed.
    """
    first, second, queries = [], [], []
    for document in documents:
        tokens = analyzer.tokens(document.text)
        if len(tokens) < MIN_TERMS:
            continue
        cut = tokens[len(tokens) // 2].start
        first.append(replace(document, text=document.text[:cut]))
        second.append(replace(document, title="", text=document.text[cut:]))
        words = document.title.strip() or document.text[: tokens[FIRST_WORDS].start]
        queries.append(Topic(id=document.id, text=words))
    order = np.random.default_rng(seed).permutation(len(queries))
    sampled = np.sort(order[:QUERIES]).tolist()
    return Halves(tuple(first), tuple(second), tuple(queries[number] for number in sampled))


def _without_other_fields(settings: Settings) -> dict[str, Any]:
    """Return the settings of halves: other searched fields would be the same in both."""
    weights = dict(zip(*settings.searched_fields, strict=True))
    names = (TITLE, TEXT)
    return {
        "search": {name: max(weights[name], 1) for name in names},
        "boosts": {name: settings.boost_factors.get(name, 1.0) for name in names},
    }


def judge_by_first_halves(halves: Halves, first: Index) -> list[Judgement]:
    """Return judgements: relevant to a query are its document and its nearest neighbours by BM25.

    first  index of the first halves
    Cost: one search per query, with a whole half as text.
    """
    texts = {document.id: f"{document.title} {document.text}" for document in halves.first}
    judgements = []
    for query in halves.queries:
        doc_ids, _ = first.rank(texts[query.id], NEAREST + 1, ranker="bm25")
        neighbours = (other for other in first.ids(doc_ids) if other != query.id)
        judgements += [
            Judgement(query_id=query.id, document_id=relevant, grade=1, gain=1)
            for relevant in (query.id, *islice(neighbours, NEAREST))
        ]
    return judgements


FEWEST_HALVED = 50  # least number of documents that are long enough to be cut
SHARE_HALVED = 0.25
"""Least share of such documents: a few long ones do not represent many short ones."""
MARGIN = 0.05
"""Required lower end of the gain on halves, as a share of the default's value.

Halves only approximate judgements. Calibrated on cran, cisi, cacm and med.
"""
MARGIN_OF_LESS = 0.25
"""The same for a smaller α: with halves, the query's own document is one of six relevant ones, so
they overestimate the lexical part. On cran they predicted a gain of 0.17 that was wrong.
"""
SIGNIFICANT = 0.05
"""Threshold of p, for small numbers of queries, where a bootstrap interval is too narrow."""


@dataclass(frozen=True)
class Tuning:
    """Result of tuning.

    evidence    "judgements" or "halves"
    queries     number of judged queries
    candidates  number of combinations of settings that were tried
    held_out    result of the choice on other queries, by `measure`
    changes     chosen settings that differ from those of the index; empty if the index has the best
    margin      gain that is required, as a share of the value of the index
    """

    evidence: str
    measure: str
    queries: int
    candidates: int
    held_out: HeldOut
    changes: Mapping[str, Any]
    margin: float

    @property
    def sure(self) -> bool:
        """Return whether the gain is significant and above the margin."""
        result = self.held_out
        beyond = result.low > self.margin * result.default
        return bool(self.changes) and beyond and result.p < SIGNIFICANT

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON."""
        values = asdict(self)
        held_out = values.pop("held_out")
        del held_out["chosen"]
        return {**values, **held_out, "sure": self.sure}


def tune(
    index: Index,
    queries: Sequence[Topic],
    judgements: Iterable[Judgement],
    *,
    measure: str = "map",
    progress: Progress | None = None,
) -> Tuning:
    """Choose settings by judgements, and measure the choice by cross-validation.

    progress  called with ("candidates", done, total)

    The index is not changed. Judgements of queries that are not in `queries` are ignored. Cost: one
    run per candidate, and a build for each k1 and b. Raise CollectionError for too few judged
    queries, or if no judgement names a relevant document of the index; OSError.
    """
    query_ids = {query.id for query in queries}
    live = set(index.ids())
    useful = [judgement for judgement in judgements if judgement.query_id in query_ids]
    if not any(judgement.grade > 0 and judgement.document_id in live for judgement in useful):
        raise CollectionError(
            f"no judgement names a relevant document of index `{index.name}` for "
            "any of the queries; compare the IDs of judgements, queries and "
            "documents"
        )
    judge = Judge(useful, measures=(measure,))
    return _tuned(index, draw(index.settings), queries, judge, progress)


def tune_by_halves(index: Index, *, progress: Progress | None = None) -> Tuning:
    """Choose α without judgements: one half of a document is the query for the other.

    Other settings are not chosen, because the best ones for halves are not the best for complete
    documents. The gain must exceed `MARGIN`, or `MARGIN_OF_LESS` for a smaller α. Cost: two builds
    of halves in a temporary folder, six runs of at most 200 queries, and memory for all documents.
    Raise CollectionError if too few documents are long enough; OSError.
    """
    halves = halve(index.live_documents(), index.analyzer)
    needed = max(FEWEST_HALVED, SHARE_HALVED * len(index))
    if len(halves.first) < needed:
        raise CollectionError(
            f"only {len(halves.first)} of the {len(index)} documents of index "
            f"`{index.name}` are long enough to be halved, and tuning without "
            f"judgements needs {needed:.0f}; give queries and judgements"
        )
    settings = index.settings.model_dump() | _without_other_fields(index.settings)
    # Only BM25 searches the first halves.
    plain = {**settings, "dimensions": 1, "spectral": "gvsm", "head": 0}
    with tempfile.TemporaryDirectory(prefix="klsa-tune-") as folder:
        with build(halves.first, name="first", home=Path(folder), **plain) as first:
            judge = Judge(judge_by_first_halves(halves, first), measures=("map",))
        with build(halves.second, name="second", home=Path(folder), **settings) as second:
            tuning = _tuned(second, alphas(index.settings), halves.queries, judge, progress)
    ranker = ranker_of(index.settings.ranker)
    before = ranker.share_of_expansion(index.settings.alpha)
    more = tuning.changes.get("alpha", 0.0) > before
    return replace(tuning, evidence="halves", margin=MARGIN if more else MARGIN_OF_LESS)


def _tuned(
    index: Index,
    candidates: Sequence[Candidate],
    queries: Sequence[Topic],
    judge: Judge,
    progress: Progress | None,
) -> Tuning:
    if len(judge.query_ids) < FEWEST_QUERIES:
        raise CollectionError(
            f"{len(judge.query_ids)} judged queries are too few: at least "
            f"{FEWEST_QUERIES} are needed for cross-validation; judge more"
        )
    if not judge.judged(queries):
        raise CollectionError(
            "no judgement belongs to any of the queries; check that both use the same query IDs"
        )
    table = measure_candidates(index, candidates, queries, judge, progress=progress)
    held_out = cross_validate(table, FOLDS)
    return Tuning(
        evidence="judgements",
        measure=judge.measures[0],
        queries=len(table),
        candidates=len(candidates),
        held_out=held_out,
        changes=candidates[held_out.chosen].changes(index.settings),
        margin=0.0,
    )
