"""BM25L, BM25+ and the language model with Dirichlet smoothing, as published.

They use plain statistics of the live documents, with k1 and b of the index, and no other setting.
With f = f(t,d), n_t documents and c_t occurrences of t, N documents with T tokens in all, and
B = 1 - b + b · dl(d) / dl_avg, the score of d is the sum over the terms of the query in d, each
times its count in the query, of

BM25L      ln((N + 1) / (n_t + ½)) · (k1 + 1)(f/B + δ) / (k1 + f/B + δ),   δ = 0.5
           [Lv & Zhai, When documents are very long, BM25 fails!, SIGIR 2011]
BM25+      ln((N + 1) / n_t) · ((k1 + 1) f / (k1 B + f) + δ),              δ = 1
           [Lv & Zhai, Lower-bounding term frequency normalization, CIKM 2011, eq. 13]
Dirichlet  max(2^-16, ln(1 + f / (μ c_t / T)) + ln(μ / (dl(d) + μ))),      μ = 1000
           [Zhai & Lafferty, A study of smoothing methods for language models, TOIS 2004]

The last is the likelihood of each term, relative to that in an empty document. A term that is rarer
in d than elsewhere would score below 0; Lucene makes it 0, and this module a trifle more, so that d
matches. μ is that of Anserini.

An example: N = 3 documents of 2, 2 and 5 tokens, T = 9, and t once in the first and twice in the
last, so n_t = 2, c_t = 3, dl_avg = 3. With k1 = 1.2 and b = 0.75 the first has B = 0.75 and
f/B = 4/3: BM25L is ln(4 / 2.5) · 2.2 · 1.8333 / 3.0333 = 0.6249, BM25+ is
ln(4 / 2) · (2.2 / 1.9 + 1) = 1.4957, and Dirichlet ln(1.003) + ln(1000 / 1002) = 0.0010.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.plugins import IndexReader, QueryTerms, sum_of_terms

Scores = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DELTA_L: Final = 0.5
DELTA_PLUS: Final = 1.0
MU: Final = 1000.0
LEAST: Final = 2.0**-16


def rank_bm25l(reader: IndexReader, query: QueryTerms) -> Scores:
    """Return BM25L scores. Cost: the words of the documents that match, for each term."""
    normalised, k1 = _normalisation(reader), reader.k1
    idf = np.log((reader.num_docs + 1) / (reader.doc_freqs[query.numbers] + 0.5))
    weights = dict(zip(query.numbers.tolist(), idf.tolist(), strict=True))

    def score(term: int, doc_ids: Integers, counts: Integers) -> Floats:
        lifted = counts / normalised[doc_ids] + DELTA_L
        return np.asarray(weights[term] * (k1 + 1) * lifted / (k1 + lifted))

    return sum_of_terms(reader, query, score)


def rank_bm25_plus(reader: IndexReader, query: QueryTerms) -> Scores:
    """Return BM25+ scores. Cost: as for BM25L."""
    normalised, k1 = _normalisation(reader), reader.k1
    frequencies = np.maximum(reader.doc_freqs[query.numbers], 1)
    idf = np.log((reader.num_docs + 1) / frequencies)
    weights = dict(zip(query.numbers.tolist(), idf.tolist(), strict=True))

    def score(term: int, doc_ids: Integers, counts: Integers) -> Floats:
        saturated = (k1 + 1) * counts / (k1 * normalised[doc_ids] + counts)
        return np.asarray(weights[term] * (saturated + DELTA_PLUS))

    return sum_of_terms(reader, query, score)


def rank_lm_dirichlet(reader: IndexReader, query: QueryTerms) -> Scores:
    """Return scores of the Dirichlet language model. Cost: as for BM25L."""
    occurrences, tokens = reader.total_term_freqs, max(reader.sum_doc_lengths, 1)
    norms = np.log(MU / (reader.doc_lengths + MU))

    def score(term: int, doc_ids: Integers, counts: Integers) -> Floats:
        expected = MU * occurrences[term] / tokens
        return np.asarray(np.maximum(np.log1p(counts / expected) + norms[doc_ids], LEAST))

    return sum_of_terms(reader, query, score)


def _normalisation(reader: IndexReader) -> Floats:
    """Return B: (max_doc,); at least a trifle, for an empty document with b = 1."""
    lengths = reader.doc_lengths / reader.average_length
    return np.asarray(np.maximum(1 - reader.b + reader.b * lengths, 1e-9))
