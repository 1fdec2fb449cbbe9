"""The steps of a build in their order, from records to the files of a generation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.cluster import analysing, counting, weighing
from klsa_search.cluster.analysing import index_ids
from klsa_search.cluster.decomposing import decomposed
from klsa_search.cluster.source import Cut, Records, cut_records, cut_terms
from klsa_search.cluster.work import StepResult, Work, map_array, read_facts
from klsa_search.core.config import Settings
from klsa_search.core.progress import COUNTS, EIGENVECTORS, POSTINGS, Progress
from klsa_search.indexing.build import Built, spectrum_entry
from klsa_search.indexing.reading import require_searched, require_split
from klsa_search.storage.arrays import VOCABULARY
from klsa_search.storage.documents import IDS, RECORDS, STARTS
from klsa_search.storage.manifest import FieldsEntry


def make_files(
    work: Work, read: Records, settings: Settings, shards: int, report: Progress
) -> tuple[Sequence[tuple[StepResult, Sequence[str]]], Built]:
    """Run all steps after reading.

    Returns the folders with the files of the generation, and the entries of its manifest.
    """
    cut = cut_records(read.records, read.documents, shards)
    kept, words = _analysed(work, read, settings, cut)
    fields = FieldsEntry.model_validate(read_facts(kept.fields))
    require_searched(settings.searched_fields, fields, read.documents)
    require_split(settings.separators(), fields, read.documents)
    report(COUNTS, 0, None)
    counted = _counted(work, words, settings)
    report(POSTINGS, 0, None)
    weighed = _weighed(work, words, counted, settings, cut)
    report(EIGENVECTORS, 0, None)
    solved = decomposed(
        work,
        weighed.features,
        settings=settings,
        documents=[shard[-1][1] - shard[0][0] for shard in cut],
        columns=weighed.columns,
        term_weights=map_array(weighed.weights, "weights"),
        progress=report,
    )
    work.empty(*weighed.features)
    files = [
        (read.records, (f"{RECORDS}.npy", f"{STARTS}.npy")),
        (kept.ids, (IDS,)),
        (counted.vocabulary, (VOCABULARY,)),
        (counted.sums, ("forward_ranks.npy",)),
        *((made, _arrays_of(made)) for made in (kept.fields, *weighed.files, solved.files)),
    ]
    counts = {
        "documents": read.documents,
        "terms": analysing.terms_of(counted.vocabulary),
        "tokens": sum(read_facts(piece)["tokens"] for piece in words),
        "non_zeros": read_facts(counted.sums)["entries"],
    }
    spectrum = spectrum_entry(solved.eigenvalues, solved.residual, solved.gap, solved.trace)
    digest = read_facts(kept.digest)["digest"]
    return files, Built(settings, counts, {"bm25": spectrum}, digest, fields)


class _Kept(NamedTuple):
    """Results that need the records only."""

    digest: StepResult
    fields: StepResult
    ids: StepResult


def _analysed(
    work: Work, read: Records, settings: Settings, cut: Cut
) -> tuple[_Kept, list[StepResult]]:
    """Analyse all pieces; the long steps over all documents start first."""
    records, N = read.records, read.documents
    (digest, fields, ids), words = work.make_groups(
        [
            (weighing.take_sum, {"records": records, "documents": N}),
            (
                weighing.write_fields,
                {"records": records, "documents": N, "declared": settings.declared()},
            ),
            (index_ids, read.ids),
        ],
        [
            (
                analysing.analyse,
                {"records": records, "first": first, "last": last, "settings": _plain(settings)},
            )
            for shard in cut
            for first, last in shard
        ],
    )
    return _Kept(digest, fields, ids), words


class _Counted(NamedTuple):
    """Counts of all documents.

    pieces  counts of each piece
    sums    sums over all pieces
    """

    vocabulary: StepResult
    pieces: list[StepResult]
    sums: StepResult


def _counted(work: Work, words: Sequence[StepResult], settings: Settings) -> _Counted:
    common = sorted(Analyzer(settings).common()) if settings.common_weight < 1 else []
    vocabulary = work.one(analysing.merge_terms, pieces=words, common=common)
    weights = list(settings.searched_fields.weights)
    pieces = work.make(
        counting.count,
        *(
            {"piece": piece, "vocabulary": vocabulary, "number": number, "weights": weights}
            for number, piece in enumerate(words)
        ),
    )
    sums = work.one(counting.sum_up, pieces=pieces, vocabulary=vocabulary)
    return _Counted(vocabulary, pieces, sums)


class _Weighed(NamedTuple):
    """Features and postings.

    files     folders with arrays of the generation
    features  features of each shard
    weights   term weights
    columns   number of features: all terms, then pairs
    """

    files: list[StepResult]
    features: list[StepResult]
    weights: StepResult
    columns: int


def _weighed(
    work: Work, words: Sequence[StepResult], counted: _Counted, settings: Settings, cut: Cut
) -> _Weighed:
    plain, common = (
        _plain(settings),
        {"vocabulary": counted.vocabulary, "summed": counted.sums},
    )
    ranges = list(pairwise(map_array(counted.sums, "limits").tolist()))
    terms = cut_terms(counted.sums, len(cut))
    (weights,), shared, codes, posted = work.make_groups(
        [(weighing.weigh_terms, {**common, "settings": plain})],
        [
            (counting.share, {"pieces": counted.pieces, "low": low, "high": high})
            for low, high in ranges
        ],
        [
            (weighing.encode, {"piece": piece, "number": number, **common})
            for number, piece in enumerate(words)
        ],
        [
            (
                weighing.post,
                {
                    "pieces": counted.pieces,
                    "summed": counted.sums,
                    "low": low,
                    "high": high,
                    "settings": plain,
                },
            )
            for low, high in terms
        ],
    )
    last = np.cumsum([len(shard) for shard in cut]).tolist()
    (numbered,), features = work.make_groups(
        [(weighing.choose_pairs, {"ranges": shared, "pairs": bool(settings.pairs), **common})],
        [
            (
                weighing.weigh_shard,
                {
                    "pieces": counted.pieces[end - len(shard) : end],
                    "weights": weights,
                    "ranges": shared,
                    "settings": plain,
                    **common,
                },
            )
            for shard, end in zip(cut, last, strict=True)
        ],
    )
    encoded = work.make(
        weighing.encode_range,
        *(
            {
                "shared": each,
                "numbered": kept,
                "vocabulary": counted.vocabulary,
                "low": low,
                "high": high,
            }
            for each, kept, (low, high) in zip(
                shared, read_facts(numbered)["numbered"], ranges, strict=True
            )
        ),
    )
    files = work.make_all(
        (weighing.join, {"name": "forward_codes", "parts": codes, "kind": "uint8"}),
        (weighing.join_sizes, {"name": "forward_starts", "parts": codes, "source": "sizes"}),
        (weighing.join, {"name": "lengths", "parts": counted.pieces, "kind": "int32"}),
        (weighing.join, {"name": "epoch_pairs", "parts": encoded, "kind": "uint8"}),
        (weighing.join_postings, {"parts": posted}),
    )
    work.empty(*words, *counted.pieces, *shared, *codes, *posted, *encoded)
    pairs = sum(read_facts(each)["pairs"] for each in shared) if settings.pairs else 0
    return _Weighed(files, features, weights, analysing.terms_of(counted.vocabulary) + pairs)


def _arrays_of(made: StepResult) -> list[str]:
    return sorted(path.name for path in made.path.glob("*.npy"))


def _plain(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json")
