"""What plug-ins are written with: parts of rankings in packages of their own.

A package names its plug-ins as entry points in its metadata. The name is then valid wherever that
of a built-in part is: in Python, settings, commands and HTTP.

group                            setting      object
`klsa_search.rankers`            `ranker`     function (`IndexReader`, `QueryTerms`) → scores
`klsa_search.kernels`            `kernel`     `FeatureWeighting` of document features
`klsa_search.spectral_functions` `spectral`   function γ → `SpectralFunction`
`klsa_search.tokenizers`         `tokenizer`  function text → iterable of (word, start, end)

A ranker scores every document of an index for a query; those with a score above 0 match:

>>> def rank(reader: IndexReader, query: QueryTerms):
...     def score(term, doc_ids, counts):
...         return np.log1p(counts) * np.log(reader.num_docs / reader.doc_freqs[term])
...     return sum_of_terms(reader, query, score)
>>> reader = IndexReader(index.arrays, index.parameters())
>>> query = QueryTerms.of([index.arrays.vocabulary.numbers["coolant"]])
>>> [round(float(score), 2) for score in rank(reader, query)]
[0.48, 0.48, 0.48, 0.0, 0.0, 0.0]

A function of the spectrum f is given at once for all eigenvalues λ, and at 0:

>>> def power(gamma):
...     return SpectralFunction(of=lambda eigenvalues: eigenvalues**gamma, value=0.0)
>>> power(0.5).of(np.array([1.0, 0.25])).tolist()
[1.0, 0.5]

The first index that names a plug-in imports it. An index records name, package and version, and is
not opened without them; only a ranker may have another version. A built-in name cannot be replaced,
and a name that two packages provide is an error. `klsa_search.plugins.testing` tests plug-ins.
"""

from klsa_search.kernels.weighting import FeatureWeighting
from klsa_search.lowrank.expansion_matrix import SpectralFunction
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.rankers.reader import IndexReader, sum_of_terms

__all__ = ["FeatureWeighting", "IndexReader", "QueryTerms", "SpectralFunction", "sum_of_terms"]
