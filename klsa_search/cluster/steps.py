"""Making: the order of the steps, from records to all files of a generation."""

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
from klsa_search.cluster.work import StepResult, Work, mapped, noted
from klsa_search.core.config import Settings
from klsa_search.core.progress import COUNTS, EIGENVECTORS, POSTINGS, Progress
from klsa_search.indexing.build import Built, spectrum_entry
from klsa_search.storage.arrays import VOCABULARY
from klsa_search.storage.documents import IDS, RECORDS, STARTS
from klsa_search.storage.manifest import FieldsEntry


def make_files(
    work: Work, read: Records, settings: Settings, shards: int, report: Progress
) -> tuple[Sequence[tuple[StepResult, Sequence[str]]], Built]:
    """Have all steps done that follow from the records.

    Returns the folders and which of their files belong to the generation, and facts about them.
    """
    cut = cut_records(read.records, read.documents, shards)
    kept, words = _analysed(work, read, settings, cut)
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
        term_weights=mapped(weighed.weights, "weights"),
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
        "tokens": sum(noted(piece)["tokens"] for piece in words),
        "non_zeros": noted(counted.sums)["entries"],
    }
    spectrum = spectrum_entry(solved.eigenvalues, solved.residual, solved.gap, solved.trace)
    fields = FieldsEntry.model_validate(noted(kept.fields))
    digest = noted(kept.digest)["digest"]
    return files, Built(settings, counts, {"bm25": spectrum}, digest, fields)


class _Kept(NamedTuple):
    """What is made of the records alone."""

    digest: StepResult
    fields: StepResult
    ids: StepResult


def _analysed(
    work: Work, read: Records, settings: Settings, cut: Cut
) -> tuple[_Kept, list[StepResult]]:
    """Analyse all pieces; the long steps over all documents begin first, the others fill up."""
    records, N = read.records, read.documents
    (digest, fields, ids), words = work.in_groups(
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
    """What is known of all documents once they are counted.

    pieces  their counts
    sums    of all
    """

    vocabulary: StepResult
    pieces: list[StepResult]
    sums: StepResult


def _counted(work: Work, words: Sequence[StepResult], settings: Settings) -> _Counted:
    common = sorted(Analyzer(settings).common()) if settings.common_weight < 1 else []
    vocabulary = work.one(analysing.merge_terms, pieces=words, common=common)
    weight = settings.title_weight
    pieces = work.make(
        counting.count,
        *(
            {"piece": piece, "vocabulary": vocabulary, "number": number, "title_weight": weight}
            for number, piece in enumerate(words)
        ),
    )
    sums = work.one(counting.sum_up, pieces=pieces, vocabulary=vocabulary)
    return _Counted(vocabulary, pieces, sums)


class _Weighed(NamedTuple):
    """What follows from all counts.

    files     folders with arrays of a generation
    features  of each shard
    weights   of terms
    columns   of the features: all terms, then pairs
    """

    files: list[StepResult]
    features: list[StepResult]
    weights: StepResult
    columns: int


def _weighed(
    work: Work, words: Sequence[StepResult], counted: _Counted, settings: Settings, cut: Cut
) -> _Weighed:
    plain, known = _plain(settings), {"vocabulary": counted.vocabulary, "summed": counted.sums}
    ranges = list(pairwise(mapped(counted.sums, "limits").tolist()))
    terms = cut_terms(counted.sums, len(cut))
    (weights,), shared, codes, posted = work.in_groups(
        [(weighing.weigh_terms, {**known, "settings": plain})],
        [
            (counting.share, {"pieces": counted.pieces, "low": low, "high": high})
            for low, high in ranges
        ],
        [
            (weighing.encode, {"piece": piece, "number": number, **known})
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
    (numbered,), features = work.in_groups(
        [(weighing.choose_pairs, {"ranges": shared, "pairs": bool(settings.pairs), **known})],
        [
            (
                weighing.weigh_shard,
                {
                    "pieces": counted.pieces[end - len(shard) : end],
                    "weights": weights,
                    "ranges": shared,
                    "settings": plain,
                    **known,
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
                shared, noted(numbered)["numbered"], ranges, strict=True
            )
        ),
    )
    files = work.together(
        (weighing.join, {"name": "forward_codes", "parts": codes, "kind": "uint8"}),
        (weighing.join_sizes, {"name": "forward_starts", "parts": codes, "source": "sizes"}),
        (weighing.join, {"name": "lengths", "parts": counted.pieces, "kind": "int32"}),
        (weighing.join, {"name": "epoch_pairs", "parts": encoded, "kind": "uint8"}),
        (weighing.join_postings, {"parts": posted}),
    )
    work.empty(*words, *counted.pieces, *shared, *codes, *posted, *encoded)
    pairs = sum(noted(each)["pairs"] for each in shared) if settings.pairs else 0
    return _Weighed(files, features, weights, analysing.terms_of(counted.vocabulary) + pairs)


def _arrays_of(made: StepResult) -> list[str]:
    return sorted(path.name for path in made.path.glob("*.npy"))


def _plain(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json")
