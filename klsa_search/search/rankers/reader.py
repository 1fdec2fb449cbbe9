"""The reader of rankers: statistics, postings and kernels of one state of an index.

Results of the rankers of plug-ins, which get it, are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Numbers, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.parameters import RankingSettings
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import KlsaError, PluginFailed
from klsa_search.kernels.bm25 import mean_length
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.boosted_bm25 import boosted_bm25

if TYPE_CHECKING:
    from scipy import sparse


class IndexReader:
    """Reads an index for one query; immutable.

    Terms and documents are numbers: terms below `max_terms`, documents below `max_doc`. Statistics
    are those of the live documents, including later writes. f(t,d) counts the words of a field by
    its weight, as `search` of the index says, and so does the length of a document.

    parameters  of the query, such as `alpha`; those not given are those of the index
    """

    def __init__(self, snapshot: Snapshot, parameters: RankingSettings) -> None:
        self._snapshot, self._kernel = snapshot, snapshot.query_kernel
        self.parameters = parameters

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids, deleted documents included: the length of scores."""
        return len(self._snapshot)

    @property
    def max_terms(self) -> int:
        """Return V, the number of terms."""
        return len(self._snapshot.vocabulary)

    @property
    def num_docs(self) -> int:
        """Return N, the number of live documents."""
        return self._kernel.counts.documents

    @property
    def k1(self) -> float:
        """Return k1 of the index."""
        return self._kernel.postings.k1

    @property
    def b(self) -> float:
        """Return b of the index."""
        return self._snapshot.settings.b

    @property
    def doc_lengths(self) -> npt.NDArray[np.int32]:
        """Return dl(d): (max_doc,)."""
        return self._snapshot.lengths

    @property
    def sum_doc_lengths(self) -> int:
        """Return the number of tokens of all live documents. Cost: O(V)."""
        return int(self._kernel.counts.occurrences.sum())

    @property
    def average_length(self) -> float:
        """Return the mean length of live documents; 1 if all are empty. Cost: O(V)."""
        return mean_length(self.sum_doc_lengths, self.num_docs)

    @property
    def doc_freqs(self) -> Numbers:
        """Return n_t, the number of documents that contain each term: (V,). Cost: O(V)."""
        return self._kernel.counts.frequencies

    @property
    def total_term_freqs(self) -> Numbers:
        """Return c_t, the occurrences of each term: (V,). Cost: O(V)."""
        return self._kernel.counts.occurrences

    def postings(self, term: int) -> tuple[DocIds, Numbers]:
        """Return the live documents that contain a term, ascending, and f(t,d) of each.

        Cost: 3 ns a word of these documents. RequestTimedOut after the deadline of a request.
        """
        check_deadline()
        doc_ids, _ = self._kernel.postings.of_term(term)
        if self._snapshot.live is not None:
            doc_ids = doc_ids[self._snapshot.live.allowed[doc_ids]]
        return doc_ids, self._snapshot.forward.term_counts(term, doc_ids)

    def counts(self, doc_ids: DocIds) -> sparse.csr_array:
        """Return f(t,d) of some documents: (n, V) sparse float32. Cost: 30 ns a word."""
        return self._snapshot.counts_of(doc_ids)

    def bm25(self, query: QueryTerms) -> Scores:
        """Return the BM25 scores k_q of the index, with its term weights: (max_doc,) float32."""
        return boosted_bm25(self._snapshot, query, self.parameters)

    def expand(self, doc_ids: DocIds, weights: Scores) -> Scores:
        """Return Σ_s weight(s) · D(s, ·) over seed documents: (max_doc,) float32.

        This is the expansion of the default ranking, by the spectral function of the parameters.
        Cost: O(z · N) for stored rows of D, else O(nnz + N · k).
        """
        return self._snapshot.expansion_of(self.parameters).expand(doc_ids, weights)


RankFunction = Callable[[IndexReader, QueryTerms], Scores]
"""A ranker as a function of the index and the terms of a query, which scores every document.

A document matches if its score is above 0. Scores of deleted documents are ignored.
"""


def sum_of_terms(
    reader: IndexReader,
    query: QueryTerms,
    score: Callable[[int, DocIds, Numbers], npt.NDArray[np.floating]],
) -> Scores:
    """Return Σ_t f(t,q) · score(t, documents, counts) of every document: (max_doc,) float32.

    `score` gets a term, the documents that contain it and f(t,d). Terms are added in order.
    """
    scores = np.zeros(reader.max_doc)
    for term, count in zip(query.numbers.tolist(), query.counts.tolist(), strict=True):
        doc_ids, counts = reader.postings(term)
        scores[doc_ids] += count * score(term, doc_ids, counts)
    return scores.astype(np.float32)


def plugin_ranker(name: str) -> RankFunction:
    """Return the ranker of a plug-in; it raises PluginFailed if it fails, or its result is invalid.

    Without a known term in the query every score is 0.
    """
    rank = load_plugin("ranker", name)
    if not callable(rank):
        raise PluginFailed(f"ranker `{name}` is not a function; name a function", field="ranker")

    def checked(reader: IndexReader, query: QueryTerms) -> Scores:
        if not len(query.numbers):
            return np.zeros(reader.max_doc, np.float32)
        try:
            scores = np.asarray(rank(reader, query), np.float32)
        except KlsaError:  # such as RequestTimedOut
            raise
        except Exception as error:  # code of another package may raise anything
            raise PluginFailed(
                f"ranker `{name}` failed ({type(error).__name__}: {error}); correct it",
                field="ranker",
            ) from error
        if scores.shape != (reader.max_doc,) or not np.isfinite(scores).all():
            raise PluginFailed(
                f"ranker `{name}` returned scores of shape {scores.shape}, or not finite; it must "
                f"return {reader.max_doc:,} finite numbers, one for each doc id",
                field="ranker",
            )
        return scores

    return checked
