"""Documents → counts of terms, and who is in a class."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from klsa_search.analysis import Analyzer
from klsa_search.collection import Collection
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.errors import CollectionError
from studies.reproduce.machine import Labels

_ANALYZER = Analyzer(AnalysisSettings(stop_words="long"))
TEXT_CHOICE = (
    "Words: titles and texts, the long English stop list and the Porter stemmer of this package; "
    "the stop lists of the papers are not named."
)


def term_counts(texts: Iterable[str], *, min_df: int = 1) -> sparse.csr_array:
    """Counts of terms (N, V): stop words out, Porter stems, terms of fewer documents out."""
    counts = CountVectorizer(analyzer=_ANALYZER.terms, min_df=min_df).fit_transform(texts)
    return sparse.csr_array(counts)


def judged_documents(
    collection: Collection, queries: Iterable[str], *, min_df: int = 1
) -> tuple[sparse.csr_array, dict[str, Labels]]:
    """Counts (N, V) of a collection, and for each query which documents are relevant to it.

    min_df  documents that a term is in, at least, to be counted
    CollectionError for a query without relevant documents.
    """
    documents = list(collection.documents())
    relevant: dict[str, set[str]] = {query: set() for query in queries}
    for judgement in collection.judgements():
        if judgement.grade > 0 and judgement.query_id in relevant:
            relevant[judgement.query_id].add(judgement.document_id)
    for query, ids in relevant.items():
        if not ids:
            raise CollectionError(
                f"{collection.name}: query {query} has no relevant documents: give the collection "
                "med as it is distributed"
            )
    labels = {
        query: np.array([document.id in ids for document in documents])
        for query, ids in relevant.items()
    }
    texts = (f"{d.title}\n{d.text}" for d in documents)
    return term_counts(texts, min_df=min_df), labels
