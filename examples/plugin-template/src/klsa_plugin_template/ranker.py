"""DPH, of the divergence from randomness, which has no parameters.

With F(t) = f(t,d) / dl(d), c_t occurrences of t in N documents of the mean length dl_avg:

    (1 - F)² / (f + 1) · (f · log2(f · dl_avg / dl · N / c_t) + ½ log2(2π f (1 - F)))

[Amati, Ambrosi, Bianchi, Gaibisso & Gambosi, TREC 2007]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.plugins import IndexReader, QueryTerms, sum_of_terms

LEAST = 2.0**-16
"""Score of a term that is rarer in a document than elsewhere: above 0, so the document matches."""


def rank_dph(reader: IndexReader, query: QueryTerms) -> npt.NDArray[np.float32]:
    """Return the scores of all documents: (max_doc,)."""
    lengths, average = reader.doc_lengths, reader.average_length
    occurrences, documents = reader.total_term_freqs, reader.num_docs

    def score(
        term: int, doc_ids: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        length = lengths[doc_ids]
        share = np.minimum(counts / length, 1 - 1e-9)  # a document of one word only
        gain = counts * np.log2(counts * average / length * documents / occurrences[term])
        gain += 0.5 * np.log2(2 * np.pi * counts * (1 - share))
        return np.maximum((1 - share) ** 2 / (counts + 1) * gain, LEAST)

    return sum_of_terms(reader, query, score)
