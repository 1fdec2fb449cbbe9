"""BM25 with boosts: words of titles and texts weighted at query time.

    sat'(t,d) = f' / (K_d + f'),   f' = title_boost · f_title(t,d) + text_boost · f_text(t,d)

as in BM25F [Robertson, Zaragoza & Taylor 2004]; f_title includes the `title_weight` of the index,
and K_d and idf do not change. With r = f' / f

    sat' = r · sat / (1 - sat + r · sat)

so K_d need not be known, and r = 1 changes no bit. Only documents with the word in their title are
counted: all others have r = text_boost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.compiling import compiled, wait_until_compiled
from klsa_search.core.config import SearchSettings
from klsa_search.core.deadlines import check_deadline
from klsa_search.kernels.postings import UNIT
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.snapshot import Snapshot
from klsa_search.storage.forward_index import GAPS, Codes, read_code


def rank_bm25(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """Return BM25 scores with the boosts of the parameters; `dimensions` is not used."""
    return boosted_bm25(snapshot, query, parameters)


def boosted_bm25(snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings) -> Scores:
    """Return k_q with the boosts of the parameters: (N,) float32.

    Cost: the postings of the query; with boosts also the titles of the documents that contain its
    terms, and the texts of those whose titles do, at 3 ns a word.
    """
    if not parameters.boosts:
        return snapshot.lexical(query)
    kernel = snapshot.query_kernel
    row = np.zeros(len(snapshot), np.int64)
    weights = kernel.quantised_weights(query.numbers, query.counts)
    for term, count, weight in zip(query.numbers.tolist(), query.counts, weights, strict=True):
        if count > 0:
            check_deadline()
            documents, saturations = boosted_postings(snapshot, term, parameters)
            row[documents] += 1 + ((weight * saturations.astype(np.int64)) >> 16)
    scores = (row * kernel.postings.step).astype(np.float32)
    return scores if snapshot.live is None else scores * snapshot.live.allowed


def boosted_postings(
    snapshot: Snapshot, term: int, parameters: SearchSettings
) -> tuple[DocIds, npt.NDArray[np.uint16]]:
    """Return the doc ids that contain a term, and its boosted saturations in 65,536ths."""
    documents, saturations = snapshot.query_kernel.postings.of_term(term)
    if not parameters.boosts:
        return documents, saturations
    forward = snapshot.forward
    counts = np.zeros((len(documents), 2), np.int64)
    given = (
        forward.codes, forward.starts, documents.astype(np.int64),
        int(forward.ranks[term]) + GAPS, counts,
    )  # fmt: skip
    wait_until_compiled(count_parts)
    count_parts(*given)
    in_title, in_text = forward.title_weight * counts[:, 0], counts[:, 1]
    boosted = parameters.title_boost * in_title + parameters.text_boost * in_text
    counted = in_title > 0
    ratios = np.full(len(documents), parameters.text_boost)
    ratios[counted] = boosted[counted] / (in_title + in_text)[counted]
    share = saturations / UNIT
    scaled = np.rint(UNIT * ratios * share / (1 - share + ratios * share))
    return documents, np.clip(scaled, 1, UNIT - 1).astype(np.uint16)


@compiled
def count_parts(
    codes: Codes,
    starts: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int64],
    wanted: int,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count a code in the titles of documents, and in the texts of those whose title contains it.

    counts  (d, 2) of title and text, written here
    Never reads outside the codes, even if they are invalid.
    """
    for i in range(len(documents)):
        at = max(starts[documents[i]], 0)
        end = min(starts[documents[i] + 1], len(codes))
        title, at = read_code(codes, at, end)
        word: Any = 0
        while at < end and (word < title or counts[i, 0] > 0):
            code, at = read_code(codes, at, end)
            if code == wanted:
                counts[i, 0 if word < title else 1] += 1
            word += code + 1 if code < GAPS else 1
