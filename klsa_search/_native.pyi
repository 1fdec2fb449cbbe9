"""The extension module in C++, compiled from klsa_search/native when the package is installed.

Arrays are in C order and of the type that is stated; they are never converted or copied. Wrong
shapes or values outside of their range raise ValueError, wrong types TypeError. Functions that
take arrays release the GIL.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from klsa_search.search.engine.engine import KlsaParams, RerankDepths

_U8 = npt.NDArray[np.uint8]
_U16 = npt.NDArray[np.uint16]
_U32 = npt.NDArray[np.uint32]
_F32 = npt.NDArray[np.float32]
_F64 = npt.NDArray[np.float64]
_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]

def instruction_sets() -> list[str]:
    """Return those of "baseline", "avx2", "avx512" that this processor supports, in this order."""

def select_instruction_set(name: str) -> str:
    """Use another instruction set from now on and return the name of the previous one.

    All give the same bits; the largest one is chosen at import. For tests.
    """

_Words = npt.NDArray[np.uint64] | None
_Query = Sequence[int]

class PostingLists:
    """The postings of consecutive documents, as `kernels.postings.Postings` describes them.

    size        number of documents
    block_bits  a block has 2^block_bits doc ids
    Cost O(V): offsets are checked, single postings are not.
    """

    def __init__(
        self,
        size: int,
        block_bits: int,
        starts: _I64,
        entries: npt.NDArray[np.uint32],
        run_starts: _I64,
        runs: npt.NDArray[np.uint16],
    ) -> None: ...

class DocumentRows:
    """The rows of D, features and vectors of consecutive documents: see `SparseExpansion`.

    Cost O(N): offsets are checked, single entries are not.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.uint32],
        scales: _F32,
        starts: _I64,
        features: npt.NDArray[np.uint32],
        document_vectors: npt.NDArray[np.int8],
    ) -> None: ...

class ExpansionModel:
    """The rows of all documents, and the vectors of terms.

    parts         one after the other
    term_vectors  `terms` of `SparseExpansion`
    rows_elsewhere, levels_elsewhere  of `RemoteRows`
    ordinals      of a partition: those of the documents of the build
    dimensions    m, coordinates of the latent space
    neighbours    entries of a row that count for coverage, the first ones
    """

    def __init__(
        self,
        parts: Sequence[DocumentRows],
        term_vectors: npt.NDArray[np.int8],
        rows_elsewhere: npt.NDArray[np.uint32],
        levels_elsewhere: npt.NDArray[np.uint8],
        ordinals: _I64 | None,
        dimensions: int,
        neighbours: int,
    ) -> None: ...

class LocalSeeds:
    """The b best documents of one partition by BM25, of which the first z may be seeds.

    It has all that other partitions need of them, and is pickled to bytes.

    doc_ids, steps, ordinals  (b,) with k_q in steps, highest first
    impacts  (b · n,) of the n distinct terms of the query, in its order, in steps
    names    ID and title of each, for a request that explains scores
    """

    doc_ids: _I32
    steps: _I64
    ordinals: _I64
    impacts: _F32
    names: list[tuple[str, str]]

class SharedSeeds:
    """The seeds of a query, as one of several partitions needs them; pickled to bytes.

    first    k_q of the first seed, in steps
    best, seeds  number of documents of the partition that are among the best and the seeds of all
    centre, factors  of E and of the parts of a score, as results.hpp describes them
    numbers  (f,) of the features of the seeds; `sums` (f,) of each, in steps
    near     (n,) ordinals of the documents in the rows of the seeds
    estimates  (n,) E of these by the rows
    remote   (m,) ordinals of the best documents of other partitions, ascending, without later
             documents, which no row of this one contains; their impacts, (m · terms,)
    names, rows, features  of the seeds, if scores are explained: `SeedRows` and `DocFeatures`
    remote_names  of the remote documents, likewise
    """

    first: int
    best: int
    seeds: int
    centre: tuple[float, float, float, float]
    factors: tuple[float, float, float, float]
    numbers: _U32
    sums: npt.NDArray[np.int16]
    near: _I64
    estimates: _F32
    remote: _I64
    impacts: _F32
    names: list[tuple[str, str]]
    remote_names: list[tuple[str, str]]
    rows: tuple[_I64, _U8, _F32, int, int]
    features: tuple[_I64, _U32, _F32]

def share_seeds(
    parts: Sequence[LocalSeeds | None], params: KlsaParams, step: float
) -> list[SharedSeeds | None]:
    """Return the seeds of a query for each partition; None for all if no document has its words.

    parts  best documents of each partition; None for a partition that does not answer
    step   value of one step of k_q
    Documents with equal scores are in the order of their ordinals; later ones follow, partition by
    partition. Cost: 50 µs.
    """

def idf_of(frequencies: _F64, documents: int, variant: str) -> _F64:
    """Return w(t) of terms: see `kernels.weighting.idf_of`."""

class TermWeights:
    """Computes the weights of terms by their counts: see `kernels.query_kernel`.

    frequencies, occurrences  (V,) of each term
    common                    numbers of common terms, ascending
    documents                 N
    max_burstiness            limit of b(t)
    common_weight             h(t) of common terms
    idf                       variant
    """

    def __init__(
        self,
        frequencies: _I64,
        occurrences: _I64,
        common: _I64,
        documents: int,
        max_burstiness: float,
        common_weight: float,
        idf: str,
    ) -> None: ...
    def of(self, terms: _I64) -> tuple[_F32, _I64, _F32]:
        """Return h(t) · w(t) of terms, the same in 65,536ths, and b(t): (n,). Cost: 50 ns each."""

class Engine:
    """Searches segments by BM25, and by the default ranking if there is a model.

    segments      first doc id, posting lists, and global numbers of its terms, ascending, with its
                  own; None for both if these are the same
    weights       of the terms
    best          (V, 4), of `Segments`
    step          value of one step of a score
    deleted       number of documents
    live          words of the mask of the live documents; None if all are
    reverse       arrays of `ReverseNeighbours`
    Immutable and thread-safe. Queries are term numbers, negative if unknown; IndexError for a term
    beyond V. A mask changes no score. Results are written to rows of `documents`, `scores` and, by
    the default ranking, `exact`, (queries, k), best first; returns how many there are for each
    query, and the totals if `totals`, else 0. `exact` has which parts of each score are not
    estimates, see `search.engine.engine.Exact`.
    """

    def __init__(
        self,
        segments: Sequence[tuple[int, PostingLists, _I64 | None, _I64 | None]],
        weights: TermWeights,
        best: npt.NDArray[np.uint16],
        step: float,
        deleted: int,
        live: _Words,
        model: ExpansionModel | None,
        reverse: tuple[_I32, npt.NDArray[np.uint32], _F32] | None,
    ) -> None: ...
    def bm25(
        self,
        queries: Sequence[_Query],
        mask: _Words,
        totals: bool,
        documents: _I32,
        scores: _F32,
    ) -> list[tuple[int, int]]:
        """Find the k best documents of each query by BM25, exactly."""

    def score(
        self,
        queries: Sequence[_Query],
        params: KlsaParams,
        depths: RerankDepths,
        mask: _Words,
        totals: bool,
        documents: _I32,
        scores: _F32,
        exact: _U8,
    ) -> list[tuple[int, int]]:
        """Find the k best documents of each query by the default ranking."""

    def saturations(self, terms: _I64, documents: _I64) -> _U16:
        """Return the saturations of terms in documents, 0 for none: (documents, terms)."""

    def explain(
        self,
        query: _Query,
        documents: _I32,
        exact: _U8,
        params: KlsaParams,
        shared: SharedSeeds | None,
    ) -> tuple[float, _I32, _F32, _U8, _F32, _F32, _F32, _F32, _F32, _F32, _I32, _F32]:
        """Return what the scores of documents consist of, by the fields of `ScoreDetails`."""

    def seeds(self, query: _Query, params: KlsaParams) -> LocalSeeds:
        """Return the b best documents by BM25, of which the first z may be seeds."""

    def rows(self, documents: _I64) -> tuple[_I64, _U8, _F32, int, int]:
        """Return rows of D, by the fields of `SeedRows`."""

    @staticmethod
    def score_all(
        parts: Sequence[tuple[Engine, _Query, KlsaParams, RerankDepths]],
        step: float,
        totals: bool,
        documents: _I32,
        scores: _F32,
        exact: _U8,
    ) -> list[tuple[int, int]]:
        """Find the k best documents of a query in each of several engines by the seeds of all."""

    def score_shared(
        self,
        query: _Query,
        params: KlsaParams,
        depths: RerankDepths,
        shared: SharedSeeds,
        local: LocalSeeds | None,
        mask: _Words,
        totals: bool,
        documents: _I32,
        scores: _F32,
        exact: _U8,
    ) -> tuple[int, int]:
        """Find the k best documents of one query by the seeds of all partitions.

        local  what `seeds` returned for the query, so that postings are not read again
        """

def insert_neighbours(
    row_of: _I32, pairs: _I32, values: _F32, neighbours: _I32, strongest: _F32
) -> None:
    """Insert entries in rows of the strongest, after entries of equal value; drop the weakest.

    row_of      (N,) row of each document, from 1
    pairs       (R, 2) the document that gets the entry, and its neighbour
    values      (R,) of the entries
    neighbours, strongest  (rows, width), changed here
    """

class Features:
    """The entries of a sparse matrix Φ in rows (documents): column and weight of each.

    columns  (nnz,) in [0, width)
    weights  (nnz,)
    width    number of columns (features)

    Methods take the first entry and the one after the last of each document, (N,) each. Sums are
    in the order of documents, then of entries.
    """

    def __init__(self, columns: _I32, weights: _F32 | _F64, width: int) -> None: ...
    def find_edge(self, begins: _I64, ends: _I64, edge: int, out: _I64) -> None:
        """Write to `out` (N,) the first entry of each document from column `edge` on.

        The columns of a document must ascend. Cost O(N log n).
        """

    @overload
    def add_to_features(self, begins: _I64, ends: _I64, blocks: _F32, sums: _F32) -> None: ...
    @overload
    def add_to_features(self, begins: _I64, ends: _I64, blocks: _F64, sums: _F64) -> None:
        """Add Φᵀ `blocks` to `sums`: (N, b) → (width, b). Cost O(nnz · b)."""

    @overload
    def add_to_documents(self, begins: _I64, ends: _I64, sums: _F32, out: _F32) -> None: ...
    @overload
    def add_to_documents(self, begins: _I64, ends: _I64, sums: _F64, out: _F64) -> None:
        """Add Φ `sums` to `out`: (width, b) → (N, b). Cost O(nnz · b)."""

def encode_documents(words: _I32, lengths: _I32, ranks: _I32, documents: int) -> tuple[_U8, _I64]:
    """Return the codes of the forward index of documents of equally many parts, and their sizes.

    words      terms of all words, negative for a word without a term
    lengths    words of each part of each document
    ranks      (V,) rank of each term, the most frequent first
    Cost: 3 ns a word.
    """

class DocumentBytes:
    """Bytes of each document: records, or codes of the forward index.

    parts  content of consecutive documents, and (n + 1,) the start of each; one after the other
    Nothing outside of the content is read: a document whose starts are damaged has no bytes.
    """

    def __init__(self, parts: Sequence[tuple[_U8, _I64]]) -> None: ...
    def __len__(self) -> int:
        """Return the number of documents."""

    def __getitem__(self, document: int) -> bytes:
        """Return the bytes of a document; IndexError."""

class ForwardCodes:
    """Reads the words of documents from the forward index; `storage.forward_index` has its codes.

    codes   of all documents
    parts   number of parts of a document: title, other searched fields, text

    `documents` are document numbers, `codes` of words those of the forward index, or -2 for a word
    without a term. Methods that read take 3 ns a word.
    """

    def __init__(self, codes: DocumentBytes, parts: int) -> None: ...
    def counts(self, documents: _I64, terms: _I32, weights: _I64) -> tuple[_I32, _F32, _I64]:
        """Return terms, counts and the number of terms of each document, terms ascending.

        terms    (V,) the term of each rank
        weights  (parts,) how often a word of each part counts
        Cost: 30 ns a word.
        """

    def count_term(self, documents: _I64, code: int, weights: _I64) -> _I64:
        """Return how often each document has a term, by the weights of its parts."""

    def count_parts(self, documents: _I64, code: int) -> _I64:
        """Return how often each part of each document has a term: (d · parts,), by document.

        In the text, the last part, only if another part has it.
        """

    def find_phrase(
        self, documents: _I64, codes: _I64, part: int, stops: int
    ) -> npt.NDArray[np.bool_]:
        """Return which documents have words in sequence in a part; in any if it is negative.

        stops  0 if all words without a term match each other, 1 if stop words match the same word,
               2 if also in capitals or not
        """

    def count_phrase(
        self, documents: _I64, codes: _I64, weights: _I64, stops: int
    ) -> npt.NDArray[np.int64]:
        """Return how often documents have words in sequence, by the weights of their parts.

        stops  as in `find_phrase`
        """

    def count_following(self, documents: _I64, codes: _I64, ranks: int) -> _I32:
        """Return, by rank of a term, in how many documents it follows words in sequence.

        All words without a term match each other.

        ranks  number of terms
        """

    def find_words(self, document: int, codes: _I64) -> tuple[_I32, _I32]:
        """Return the positions of words in the text of a document, and which of `codes` each is.

        Positions ascend; words without a term are counted.
        """

class Characters:
    """Classes of the first n code points, and the forms of those that NFKC changes.

    classes  (n,) by code point; those beyond are separators
    changed  (m,) code points that change, ascending
    starts   (m + 1,) start of each form
    forms    code points of all forms
    """

    def __init__(self, classes: _U8, changed: _U32, starts: _I32, forms: _U32) -> None: ...
    @property
    def classes(self) -> _U8: ...
    @property
    def changed(self) -> _U32: ...
    @property
    def starts(self) -> _I32: ...
    @property
    def forms(self) -> _U32: ...

def locate_words(line: _U32, characters: Characters, wanted: _I32) -> tuple[_I32, _I32] | None:
    """Return start and end of some words of a line of code points, as in `Analyzer.tokens`.

    wanted  positions of words, ascending
    None for rare sequences that only `Analyzer.tokens` handles, such as a mark after a fraction.
    Cost: 3 ns a character up to the last word, 10 ns in scripts without spaces.
    """

def fold_text(text: _U32, characters: Characters) -> _U32:
    """Return a text with each run of blank space as one character, without those at its ends.

    It is a line feed if it contains one, a form feed if it contains several or a form feed, and
    otherwise a blank. The characters must be those of Unicode unless the text is ASCII.
    """

def best_passage(
    line: _U32, terms: _I32, starts: _I32, ends: _I32, weights: _F64, length: int
) -> _U32:
    """Return the passage of a folded line around the window of tokens of highest weight.

    terms         of each token, as an index of weights
    starts, ends  of each token, ascending
    weights       of the terms; repeated ones count a tenth in a window
    length        characters of the passage, at most, without "…" at cut ends
    """

class Records:
    """Reads the records of stored documents: see `storage/documents.py`.

    IndexError for an unknown doc id, ValueError for a damaged record.
    """

    def __init__(self, records: DocumentBytes) -> None: ...
    def heads(
        self, documents: Sequence[int], decode: Callable[[str], Mapping[str, Any]]
    ) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Return ID, title and metadata of documents. Cost: 0.3 µs each.

        decode  reads metadata that are not empty
        """

    def text(self, document: int) -> str:
        """Return the text of a document."""

class PassageFinder:
    """Selects passages of stored documents by their forward index.

    codes, ranks  of the forward index
    parts         number of parts of a document
    """

    def __init__(self, records: Records, codes: DocumentBytes, ranks: _I32, parts: int) -> None: ...
    def passages(
        self,
        documents: Sequence[int],
        terms: Sequence[int],
        weights: Sequence[float],
        length: int,
        characters: Characters,
    ) -> tuple[list[str], list[int], list[int]] | None:
        """Return a passage of each document, as one line; see `best_passage`.

        weights  of the terms, or none if all are 1
        The lists of places are of passages that may contain Markdown, which keep their line ends,
        and of documents whose words cannot be located (`locate_words`), with an empty passage.
        None if the characters are those of ASCII, and a text is not; ValueError for a text that is
        not UTF-8 or contains a zero byte. Cost: 1 µs and 1 ns a character for each, 5 ns if it is
        not ASCII. Memory: 1 byte a byte of the longest text, 4 if it is not ASCII, and 12 if NFKC
        changes any of it.
        """

class KnnPart:
    """Documents with doc ids from `first` on, among which neighbours are found.

    starts, columns, weights      features of n documents, as in CSR; no weight is negative
    scales, towards_mean          (n,) S and SΦμ; `mean_square` is ‖μ‖²
    posting_starts, posting_documents, posting_values
                                  truncated postings of each of F features, with documents
                                  numbered from 0, ascending
    Cost of the checks: O(nnz).
    """

    def __init__(
        self,
        first: int,
        starts: _I64,
        columns: _I32,
        weights: _F32,
        scales: _F32,
        towards_mean: _F32,
        mean_square: np.float32,
        posting_starts: _I64,
        posting_documents: _I32,
        posting_values: _F32,
    ) -> None: ...

class KnnSearcher:
    """Finds the neighbours of the documents of part `own` in all parts; `KnnParams` has limits.

    Memory: 8 (n + F) bytes for each thread that calls it, n the documents of the largest part.
    """

    def __init__(
        self, parts: list[KnnPart], own: int, *, features: int, postings: int, candidates: int
    ) -> None: ...
    def write_rows(self, rows: _I64, columns: _I32, values: _F32, sizes: _I32) -> None:
        """Write the largest positive entries of rows of K, in document order.

        rows             (r,) documents, numbered from 0 in their part
        columns, values  (r, width), of which sizes[i] entries are written in row i
        """

def truncate_postings(
    starts: _I64,
    documents: _I32,
    weights: _F32 | _F64,
    scales: _F32,
    kept_starts: _I64,
    kept_documents: _I32,
    kept_values: _F32,
) -> None:
    """Write the largest postings of each feature, times the scales of their documents.

    starts, documents, weights  all postings, as in CSC
    kept_starts                 (F + 1,) where those that are kept begin
    Of equal values the first documents are kept. Cost O(nnz).
    """

def compact_rows(columns: _I32, values: _F32, sizes: _I32) -> int:
    """Move the first sizes[i] entries of all rows i to the front of their arrays.

    Return their number: (n, width), (n, width), (n,).
    """

def pack_rows(
    starts: _I64,
    columns: _I32,
    values: _F32 | _F64,
    ranks: _I32 | None,
    packed_starts: _I64,
    packed: _U32,
    steps: _F32,
) -> int:
    """Write the positive entries of rows as column << 8 | level; return their number.

    values         in rows that begin at `starts`
    ranks          new number of each column; entries from 2^24 on are left out
    packed_starts  starts of the packed rows
    packed         as long as `values`
    steps          (rows,) 1/255 of the largest value of a row; a level is 1 to 255 of them
    """

def pack_table(starts: _I64, columns: _I32, values: _F32, table: _U32, steps: _F32) -> None:
    """Write the largest positive entries of each row off the diagonal, as of `pack_rows`.

    table  (rows, width), largest first, padded with 0; ties are ordered by column
    Cost O(entries log width).
    """

def pack_partition_table(
    starts: _I64,
    columns: _I32,
    values: _F32,
    first: int,
    ordinals: _I64,
    table: _U32,
    steps: _F32,
    documents: _U32,
    levels: _U8,
) -> None:
    """Write what `pack_table` does for a partition, whose diagonal begins at column `first`.

    ordinals           of all columns, by which ties are ordered
    table              entries whose columns are rows of the partition, numbered from 0
    documents, levels  (rows, width) ordinals and levels of the others
    """

def encode_pairs(keys: _I64, frequencies: _I64, terms: int) -> _U8:
    """Return the codes of term pairs.

    keys         lesser · terms + greater, ascending
    frequencies  document frequencies, 2 or more
    Cost: O(terms + pairs). Memory: 10 bytes a pair.
    """

def decode_pairs(codes: _U8, terms: int) -> tuple[_I64, _I32, _I32]:
    """Return starts (terms + 1,) of the pairs of each lesser term, greater terms, frequencies."""

def number_features(features: _I32, next_numbers: _I64) -> None:
    """Replace the document frequency of each feature by the next number of that frequency."""

def find_pairs(keys: _I64, terms: int, starts: _I64, greater: _I32, numbers: _I32) -> _I32:
    """Return the numbers of pair keys, -1 for unknown ones: (n,). Cost: O(n log P)."""

class KernelDocuments:
    """Documents as the kernel needs them; views of the arrays.

    starts    (N + 1,) start of the features of each
    features  packed: number << 8 | level
    scalars   (N, 3) step, S and SΦμ; those of a document side by side
    boosts    (N,) S · K(x,x)^-¼
    """

    def __init__(self, starts: _I64, features: _U32, scalars: _F32, boosts: _F32) -> None: ...

class LaterPostings:
    """Postings of the documents written after a build, by term, below `term_count`.

    Not for several threads while it is appended to. Memory: 24 bytes a term, 8 to 16 a posting.
    """

    def __init__(self, term_count: int) -> None: ...
    def append(self, starts: _I64, terms: _I32, shares: _U16) -> None:
        """Append the next documents.

        starts  (n + 1,) start of the terms of each, and the end of the last
        terms   of the documents
        shares  their saturations
        """

class FoldInNeighbours:
    """Finds the nearest neighbours of later documents; `delta.folding` has the method.

    documents                           of the build
    starts, entries, run_starts, runs   its postings, see `kernels.postings`
    block_bits                          of their blocks
    mean_square                         ‖μ‖²
    Buffers for each thread that searches: 5 bytes a document and one a feature.
    """

    def __init__(
        self,
        documents: KernelDocuments,
        starts: _I64,
        entries: _U32,
        run_starts: _I64,
        runs: _U16,
        block_bits: int,
        mean_square: float,
    ) -> None: ...
    def search(
        self,
        begin: int,
        end: int,
        offset: int,
        starts: _I64,
        terms: _I32,
        weights: _F32,
        later: LaterPostings,
        documents: KernelDocuments,
        budget: int,
        candidates: int,
        values: _F32,
        neighbours: _I32,
    ) -> None:
        """Write the strongest entries of later documents begin..end among all before each.

        starts, terms, weights  of the terms of documents from number `offset` on, as in CSR
        later                   postings of the later documents
        documents               these
        budget                  postings of the build that are read for a document, at most
        candidates              documents for which K is computed, at most
        values, neighbours      output, by document from `offset`: strongest first, and the numbers
                                of the documents; both 0 at first
        """

def count_block(
    words: _I32, lengths: _I32, parts: _I32, paired: npt.NDArray[np.bool_], weights: _I64
) -> tuple[_I32, _I32, _I32, _I32, _I64, _I32]:
    """Count terms and pairs of the documents of a block; `kernels.counts` has the arguments.

    Return the fields of `BlockCounts`. Cost: O(T log t) for T words in documents of t words.
    """

def number_pairs(
    shared: _I64, starts: _I64, sizes: _I32, keys: _I64, counts: _I32
) -> tuple[_I32, _I32, _I32]:
    """Return the shared pairs of some documents as sizes, numbers and counts.

    shared        (P,) keys in order
    starts        (V + 1,) start of the pairs of each lesser term
    sizes         (n,) number of pairs of each document in keys and counts
    Cost: O(log P) a pair.
    """

def squares_of_rows(starts: _I64, data: _F32 | _F64, sums: _F64) -> None:
    """Write Σ_f x² of each row to `sums`: (m,). Cost O(nnz)."""

def add_to_columns(columns: _I32, data: _F32 | _F64, sums: _F64) -> None:
    """Add the entries of each column to `sums`: (n,). Cost O(nnz)."""

def rows_with(starts: _I64, columns: _I32, data: _F32 | _F64, vector: _F64, sums: _F64) -> None:
    """Write the inner product of each row with a vector to `sums`: (n,) → (m,). Cost O(nnz)."""

def scale_rows(starts: _I64, data: _F32 | _F64, scales: _F64, scaled: npt.NDArray[Any]) -> None:
    """Write each row times its scale to `scaled`, of float32 or float64: (nnz,). Cost O(nnz)."""

def count_postings(
    starts: _I64,
    terms: _I32,
    counts: npt.NDArray[Any],
    bits: int,
    lengths: _I64,
    runs: _I64,
    occurrences: _I64,
) -> None:
    """Add the postings, runs and occurrences of each term to (V,) arrays.

    starts, terms, counts  f(t,d) as in CSR; counts are int32, int64, float32 or float64
    bits                   a block has 2^bits documents
    Cost O(nnz).
    """

def write_postings(
    starts: _I64,
    terms: _I32,
    counts: npt.NDArray[Any],
    norms: _F64,
    bits: int,
    places: _I64,
    run_places: _I64,
    entries: npt.NDArray[np.uint32],
    runs: npt.NDArray[np.uint16],
) -> None:
    """Write the entries and runs of documents, and advance the places of each term.

    norms               K_d of each document
    places, run_places  (V,) where the next entry and run of each term are written
    `runs` must be 0. See `count_postings` for the other arguments. Cost O(nnz).
    """

def find_best_saturations(
    starts: _I64, entries: npt.NDArray[np.uint32], depths: _I64, best: npt.NDArray[np.uint16]
) -> None:
    """Write the n-th best saturation of each term for every n of `depths`, where there are n.

    depths  (m,) ascending, at least 1
    best    (V, m)
    Cost O(nnz).
    """

def add_steps(
    starts: _I64,
    entries: npt.NDArray[np.uint32],
    run_starts: _I64,
    runs: npt.NDArray[np.uint16],
    bits: int,
    terms: _I64,
    weights: _I64,
    steps: _I64,
) -> None:
    """Add 1 + ⌊weight · saturation / 2^16⌋ of some terms to the documents that contain them: (N,).

    `kernels.postings` describes the postings. Cost: those of the terms.
    """

def add_cosines(
    rows: npt.NDArray[np.int8],
    documents: _I32,
    scales: _F32,
    query: npt.NDArray[np.int8],
    scale: np.float32,
    cosines: _F32,
) -> None:
    """Raise the cosine of each document to the largest of its vectors with a query: (N,).

    rows       (R, m) vectors; `documents` and `scales` (R,) have the document and 1 / length
    query      (m,) and its 1 / length, `scale`
    Cost O(m) for a vector: 7 ns with 384 values and AVX-512, 18 ns without vector code.
    """

class QueryForms:
    """What the words of queries add to their terms, by a table of the forms met before.

    A form is a piece of a query between blanks, or several pieces that are read together.
    Thread-safe.

    capacity      forms that are kept; the table is emptied when it is full
    max_checked   words of a query that may be corrected or divided
    max_variants  other writings of words of a query
    """

    def __init__(self, capacity: int, max_checked: int, max_variants: int) -> None: ...
    def read(self, query: str) -> tuple[list[int], int] | list[str]:
        """Return the terms of a query and its traits, or the forms that `add` has to add first.

        The terms of words come first, then those of joined words, then those of their parts, which
        are not repeated. Traits are -1 without a term that documents contain, and if the forms do
        not suffice: see max_checked, max_variants.
        """

    def variants(self, query: str) -> dict[str, str] | None:
        """Return how documents also write words of a query that `read` returned the terms of.

        None if its interpretation is more than its words and these, or if that is not known.
        """

    def add_separate(self, text: str) -> None:
        """Add two pieces that are not read together, although their words might be joined."""

    def add(
        self,
        text: str,
        first: int,
        last: int,
        begins: bool,
        ends: bool,
        traits: int,
        covers_unknown: bool,
        words: list[int],
        joined: list[int],
        corrected: list[str],
        divided: list[tuple[str, list[int]]],
        variants: dict[str, str],
    ) -> None:
        """Add a form.

        first, last     kinds of its ends, as of `piece.Run`, by which pieces are read together
        begins, ends    whether it begins and ends with a word that may be joined to others
        covers_unknown  whether joined words stand for some that no document contains
        words, joined   terms
        corrected       words that may have been corrected
        divided         words that may be divided, with the terms of their parts
        variants        words, and how documents also write them
        """

class WordNumbers:
    """Numbers of the words of texts, by a table of the forms met before; not thread-safe.

    capacity  forms that are kept; the table is emptied when it is full
    names     whether names with signs, such as C++ and .NET, are words
    """

    def __init__(self, capacity: int, names: bool) -> None: ...
    def number(
        self,
        texts: list[str],
        of_word: Callable[[str], int],
        of_text: Callable[[str], Iterable[int]],
    ) -> tuple[bytes, bytes]:
        """Return the numbers of all words, and the number of words of each text, as int32.

        of_word  returns the number of a word of ASCII; called once for each form that is kept
        of_text  returns those of a text that is not ASCII, or may contain a name with signs
        Cost: some 10 ns a word of ASCII.
        """
