"""The best documents of a query, and rankings: functions that return those of a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.mask import LANES, Mask, intersection


class TopDocs(NamedTuple):
    """The best documents of a query, best first, ties by doc id.

    doc_ids, scores  of documents that pass the mask and score above 0, at most k
    total            how many documents match, whatever k; 0 if not requested
    exact            which parts of each score are not estimates, see `Exact`; None if the engine of
                     the default ranking did not score them
    before           the same documents with their scores before passages, vectors or boosts changed
                     them; None if nothing did
    passages         the best passage of each document, -1 with score 0 for none, if passages count
    matches          the documents of the mask that match; None if they were not requested
    """

    doc_ids: DocIds
    scores: Scores
    total: int
    exact: npt.NDArray[np.uint8] | None = None
    before: TopDocs | None = None
    passages: TopDocs | None = None
    matches: Mask | None = None

    def at(self, positions: DocIds | DocumentMask | slice) -> TopDocs:
        """Return the documents at some positions, or of a mask or slice, with the same matches."""
        return TopDocs(
            self.doc_ids[positions],
            self.scores[positions],
            self.total,
            None if self.exact is None else self.exact[positions],
            None if self.before is None else self.before.at(positions),
            None if self.passages is None else self.passages.at(positions),
            self.matches,
        )

    def rescored(self, scores: Scores, total: int) -> TopDocs:
        """Return the same documents with other scores."""
        return TopDocs(self.doc_ids, scores, total, before=self, matches=self.matches)

    def joined(self, later: TopDocs) -> TopDocs:
        """Return these documents, then later ones, with the matches of these."""

        def both(one: TopDocs | None, other: TopDocs | None) -> TopDocs | None:
            return None if one is None or other is None else one.joined(other)

        has_exact = self.exact is not None and later.exact is not None
        return TopDocs(
            np.concatenate((self.doc_ids, later.doc_ids)),
            np.concatenate((self.scores, later.scores)),
            self.total,
            np.concatenate((self.exact, later.exact)) if has_exact else None,  # type: ignore[arg-type]
            both(self.before, later.before),
            both(self.passages, later.passages),
            self.matches,
        )

    def unscored(self, doc_ids: DocIds) -> TopDocs:
        """Return other documents with score 0, to join them."""
        ids = doc_ids.astype(self.doc_ids.dtype)
        return TopDocs(
            ids,
            np.zeros(len(ids), np.float32),
            0,
            None if self.exact is None else np.zeros(len(ids), np.uint8),
            None if self.before is None else self.before.unscored(doc_ids),
            None if self.passages is None else self.passages.unscored(np.full_like(ids, -1)),
        )


NOTHING: Final = TopDocs(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
NO_HITS: Final = NOTHING._replace(exact=np.zeros(0, np.uint8))
"""Results of the default ranking for a query that finds nothing."""


class ResultArrays:
    """Space for documents, scores and what is exact, k of each query, and for which match."""

    def __init__(self, queries: int, k: int, size: int, *, matches: bool = False) -> None:
        shape, self._size = (queries, k), size
        self.documents, self.scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
        self.exact = np.empty(shape, np.uint8)
        self.matches = np.empty((queries, -(-size // LANES)), np.uint64) if matches else None
        self.arrays = self.matches, self.documents, self.scores, self.exact

    def tops(self, counts: Sequence[tuple[int, int]], *, estimates: bool = True) -> list[TopDocs]:
        """Return the results of each query, by their number and the total.

        estimates  whether the engine wrote what is exact
        """
        tops = [
            TopDocs(
                self.documents[row, :count],
                self.scores[row, :count],
                total,
                self.exact[row, :count] if estimates else None,
            )
            for row, (count, total) in enumerate(counts)
        ]
        if self.matches is None:
            return tops
        masks = (Mask.of_words(words, self._size) for words in self.matches)
        return [top._replace(matches=mask) for top, mask in zip(tops, masks, strict=True)]


ALL_CANDIDATES: Final = 1000
"""Number of results from which all candidates of a small collection are rescored."""


class Rank(Protocol):
    """A ranking."""

    def __call__(self, k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
        """Return the k best documents of a mask, and how many match, or also which."""


def ranked(rank: Rank, doc_ids: DocIds, size: int) -> TopDocs:
    """Return documents in the order given, with score 0 if they do not match.

    size  number of doc ids of the index
    """
    top = rank(max(len(doc_ids), 1), Mask.of_documents(doc_ids, size))
    joined = top.joined(top.unscored(np.setdiff1d(doc_ids, top.doc_ids)))
    order = np.argsort(joined.doc_ids)
    return joined.at(order[np.searchsorted(joined.doc_ids, doc_ids, sorter=order)])


def best_of(scores: Scores, k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
    """Return the k best documents of a mask by the scores of all documents: see `Rank`."""
    scores = scores if mask is None else scores * mask.allowed
    (doc_ids, best), matching = largest_entries(scores, k), Mask(scores > 0)
    return TopDocs(doc_ids, best, matching.size, matches=matching)


def boosted(rank: Rank, factors: npt.NDArray[np.float64]) -> Rank:
    """Return a ranking by the scores times the factors of the documents.

    factors  (N,)
    Cost: a ranking of all matches, now.
    """
    total = rank(1, None).total
    # Compared scores are those of a deep ranking, even for few matches.
    complete = rank(max(total, ALL_CANDIDATES), None)
    scores = (complete.scores * factors[complete.doc_ids]).astype(np.float32)
    order = np.lexsort((complete.doc_ids, -scores))[: np.count_nonzero(scores)]
    complete = complete.at(order).rescored(scores[order], len(order))

    def by_factors(k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
        top = complete if mask is None else complete.at(mask.allowed[complete.doc_ids])
        matching = Mask.of_documents(top.doc_ids, len(factors)) if matches else None
        return top.at(slice(k))._replace(total=len(top.doc_ids), matches=matching)

    return by_factors


def typed_matches_first(rank: Rank, typed_matches: DocumentMask) -> Rank:
    """Return a ranking in which some documents that match come before all others.

    typed_matches  (N,) which
    Cost: a second ranking.
    """
    parts = Mask(typed_matches), Mask(~typed_matches)

    def with_leading(k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
        first, following = (rank(k, intersection(mask, part), matches=matches) for part in parts)
        top = first.joined(following).at(slice(k))
        matching = None
        if first.matches is not None and following.matches is not None:
            matching = first.matches | following.matches
        return top._replace(total=first.total + following.total, matches=matching)

    return with_leading


def id_match_first(rank: Rank, id_match: int, size: int) -> Rank:
    """Return a ranking in which a document comes first if the mask allows it, match or not.

    size  number of doc ids of the index
    """

    def with_named(k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
        top = rank(k, mask, matches=matches)
        if mask is not None and id_match not in mask:
            return top
        is_id_match, total = top.doc_ids == id_match, top.total
        first = top.at(is_id_match)
        if not is_id_match.any():
            first = ranked(rank, np.full(1, id_match), size)
            total += int(first.scores[0] == 0)
        matching = top.matches and top.matches.with_document(id_match)
        top = first.joined(top.at(~is_id_match)).at(slice(k))
        return top._replace(total=total, matches=matching)

    return with_named
