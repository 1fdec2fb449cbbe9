// Nearest neighbours of the documents of a build, and of those that are written after it.
#include "neighbours.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.hpp"
#include "bindings.hpp"
#include "fold_in.hpp"
#include "pool.hpp"
#include "posting_lists.hpp"

#define KLSA_KERNELS "neighbours_kernels.hpp"
#include "for_each_instruction_set.hpp"

namespace klsa {
namespace {

template <class W>
void truncate_postings(Array1<const i64> starts, Array1<const i32> documents, Array1<const W> weights,
                       Array1<const f32> scales, Array1<const i64> kept_starts, Array1<i32> kept_documents,
                       Array1<f32> kept_values) {
    const i64 features = length(starts) - 1;
    require(features >= 0 && length(kept_starts) == features + 1, "starts: the numbers of features differ");
    require_offsets(starts, length(documents), "starts");
    require_offsets(kept_starts, length(kept_documents), "kept_starts");
    require(length(documents) == length(weights), "documents and weights: their lengths differ");
    require(length(kept_documents) == length(kept_values), "kept arrays: their lengths differ");
    require_between(documents, 0, length(scales), "documents");
    std::vector<f32> scaled, sorted;
    for (i64 feature = 0; feature < features; feature++) {
        const i64 begin = starts(feature), size = starts(feature + 1) - begin;
        i64 at = kept_starts(feature);
        const i64 kept = kept_starts(feature + 1) - at;
        require(kept <= size, "kept_starts: a feature has fewer postings than are to be kept");
        if (kept == 0) continue;
        scaled.resize(size_t(size));
        for (i64 i = 0; i < size; i++) scaled[size_t(i)] = f32(weights(begin + i) * scales(documents(begin + i)));
        f32 threshold = -1;
        i64 ties = 0;
        if (kept < size) {
            sorted = scaled;
            std::nth_element(sorted.begin(), sorted.begin() + (kept - 1), sorted.end(), std::greater<>());
            threshold = sorted[size_t(kept - 1)];
            ties = kept;
            for (f32 value : scaled) ties -= value > threshold;
        }
        // Of equal values the first documents.
        for (i64 i = 0; i < size; i++) {
            const f32 value = scaled[size_t(i)];
            if (!(value > threshold || (value == threshold && ties > 0))) continue;
            ties -= value == threshold;
            require(at < kept_starts(feature + 1), "weights: a value is negative or not a number");
            kept_documents(at) = documents(begin + i);
            kept_values(at) = value;
            at++;
        }
    }
}

struct KnnPart {
    Owners owners;
    KnnDocuments arrays;
    i64 features;

    KnnPart(i64 first, Array1<const i64> starts, Array1<const i32> columns, Array1<const f32> weights,
            Array1<const f32> scales, Array1<const f32> towards_mean, f32 mean_square, Array1<const i64> posting_starts,
            Array1<const i32> posting_documents, Array1<const f32> posting_values)
        : arrays{first,
                 length(scales),
                 owners.keep(starts).data(),
                 owners.keep(columns).data(),
                 owners.keep(weights).data(),
                 owners.keep(scales).data(),
                 owners.keep(towards_mean).data(),
                 mean_square,
                 owners.keep(posting_starts).data(),
                 owners.keep(posting_documents).data(),
                 owners.keep(posting_values).data()},
          features(length(posting_starts) - 1) {
        const i64 documents = length(scales);
        require(first >= 0 && first + documents < LOW, "first: a doc id has more than 32 bits");
        require(length(starts) == documents + 1 && length(towards_mean) == documents,
                "starts, scales and towards_mean: their numbers of documents differ");
        require(features >= 0, "posting_starts: it is empty");
        require(length(columns) == length(weights), "columns and weights: their lengths differ");
        require(length(posting_documents) == length(posting_values), "postings: their lengths differ");
        require_offsets(starts, length(columns), "starts");
        require_between(columns, 0, features, "columns");
        require_offsets(posting_starts, length(posting_documents), "posting_starts");
        require_between(posting_documents, 0, documents, "posting_documents");
        bool is_wrong = false;
        for (i64 f = 0; f < features; f++)
            for (i64 p = posting_starts(f) + 1; p < posting_starts(f + 1); p++)
                is_wrong |= posting_documents(p) <= posting_documents(p - 1);
        require(!is_wrong, "posting_documents: those of a feature do not ascend");
        for (i64 p = 0; p < length(weights); p++) is_wrong |= !(weights(p) >= 0);
        for (i64 p = 0; p < length(posting_values); p++) is_wrong |= !(posting_values(p) >= 0);
        require(!is_wrong, "weights and posting_values: a value is negative or not a number");
    }
};

class KnnSearcher {
  public:
    KnnSearcher(const KnnPart& own, Array1<const i64> counts, i64 features, i64 postings)
        : limits_{features, postings}, own_(own.arrays), features_(own.features), counts_(owners_.keep(counts).data()) {
        require(features > 0 && postings > 0, "a limit is not positive");
        require(length(counts) == features_, "counts: not one for each feature");
        require_between(counts, 0, LOW, "counts");
        owners_.keep(own.owners);
    }

    void find_candidates(const KnnPart& part, i64 first, Array2<i64> keys) {
        require_rows(part, first, keys);
        auto buffers = taken();
        for (i64 i = 0; i < length(keys); i++)
            KLSA_DISPATCH(find_candidates(own_, first + i, part.arrays, counts_, limits_, *buffers, row_of(keys, i)));
        unused_.give(std::move(buffers));
    }

    void add_entries(const KnnPart& part, i64 first, Array2<const i64> keys, Array2<i32> columns, Array2<f32> values) {
        require_rows(part, first, keys);
        require_rows(part, first, columns);
        require(
            length(values) == length(columns) && values.shape(1) == columns.shape(1) && length(keys) == length(columns),
            "keys, columns and values: their shapes differ");
        auto buffers = taken();
        for (i64 i = 0; i < length(keys); i++)
            KLSA_DISPATCH(add_entries(own_, first + i, part.arrays, row_of(keys, i), *buffers, row_of(columns, i),
                                      row_of(values, i)));
        unused_.give(std::move(buffers));
    }

  private:
    template <class Table>
    void require_rows(const KnnPart& part, i64 first, const Table& table) const {
        require(part.features == features_, "part: it has another number of features");
        require(0 <= first && first <= own_.documents && length(table) <= own_.documents - first,
                "first: there are no such documents");
        require(table.shape(1) > 0, "a table has no columns");
    }

    template <class Table>
    static std::span<typename Table::Scalar> row_of(const Table& table, i64 row) {
        return {table.data() + row * i64(table.shape(1)), table.shape(1)};
    }

    std::unique_ptr<KnnBuffers> taken() {
        auto buffers = unused_.take();
        buffers->sums.resize(std::max(KNN_BLOCK, KNN_SPARSE_BLOCK));
        buffers->dense.resize(size_t(features_));
        return buffers;
    }

    KnnLimits limits_;
    Owners owners_;
    KnnDocuments own_;
    i64 features_;
    const i64* counts_;
    Pool<KnnBuffers> unused_;
};

i64 compact_rows(Array2<i32> columns, Array2<f32> values, Array1<const i32> sizes) {
    const i64 width = i64(columns.shape(1));
    require(length(columns) == length(sizes) && length(values) == length(sizes) && i64(values.shape(1)) == width,
            "columns, values and sizes: their shapes differ");
    require_between(sizes, 0, width + 1, "sizes");
    i64 total = 0;
    for (i64 row = 0; row < length(sizes); row++) {
        std::copy_n(columns.data() + row * width, sizes(row), columns.data() + total);
        std::copy_n(values.data() + row * width, sizes(row), values.data() + total);
        total += sizes(row);
    }
    return total;
}

class Documents {
  public:
    Documents(Array1<const i64> starts, Array1<const u32> features, Array2<const i8> vectors, Array1<const f32> boosts)
        : starts_(starts), features_(features), vectors_(vectors), boosts_(boosts) {
        const i64 size = length(boosts);
        require(length(starts) == size + 1, "starts: give the start of each document, and the end of the last");
        require_offsets(starts, length(features), "starts");
        require(length(vectors) == size, "vectors: not one for each document");
        require(vectors.shape(1) % sizeof(f32) == 0 && width() >= SCALARS, "vectors: they have no scalars");
    }

    KernelRows rows() const {
        const f32* scalars = reinterpret_cast<const f32*>(vectors_.data()) + width() - SCALARS;
        return {span_of(starts_), span_of(features_), scalars, width(), span_of(boosts_)};
    }

  private:
    static constexpr i64 SCALARS = 3;  // step, S and SΦμ, after the coordinates of a document

    i64 width() const { return i64(vectors_.shape(1) / sizeof(f32)); }

    Kept<Array1<const i64>> starts_;
    Kept<Array1<const u32>> features_;
    Kept<Array2<const i8>> vectors_;
    Kept<Array1<const f32>> boosts_;
};

struct InvertedFile : LaterPostings {
    explicit InvertedFile(i64 term_count) {
        require(term_count >= 0, "term_count: is negative");
        of_terms.resize(term_count);
    }

    // Append documents, of which the terms are given one document after the other.
    void append(Array1<const i64> starts, Array1<const i32> terms, Array1<const u16> shares) {
        require(length(starts) > 0, "starts: is empty");
        require_offsets(starts, length(terms), "starts");
        require(length(terms) == length(shares), "terms and shares: their lengths differ");
        require_between(terms, 0, i64(of_terms.size()), "terms");
        for (i64 d = 0; d + 1 < length(starts); d++, documents++)
            for (i64 p = starts(d); p < starts(d + 1); p++) of_terms[terms(p)].push_back({i32(documents), shares(p)});
    }
};

class FoldInNeighbours {
  public:
    FoldInNeighbours(const Documents& documents, const ListsObject& postings, f64 mean_square)
        : documents_(documents), postings_(postings), mean_square_(mean_square) {}

    void search(i64 begin, i64 end, i64 offset, Array1<const i64> starts, Array1<const i32> terms,
                Array1<const f32> weights, const InvertedFile& later, const Documents& documents, i64 budget,
                i64 candidates, Array2<f32> values, Array2<i32> neighbours) {
        const KernelRows old_rows = documents_.rows(), rows = documents.rows();
        require(0 <= offset && offset <= begin && begin <= end && end <= rows.size(),
                "begin and end: no such documents");
        require(end - offset < length(starts) && end - offset <= length(values) &&
                    length(values) == length(neighbours) && values.shape(1) == neighbours.shape(1),
                "starts, values and neighbours: they have different numbers of documents");
        require(length(terms) == length(weights), "terms and weights: their lengths differ");
        require_offsets(starts, length(terms), "starts");
        require_between(terms, 0, std::min(postings_.lists.terms(), i64(later.of_terms.size())), "terms");
        require(candidates > 0 && candidates <= NeighbourSearch::LAST, "candidates: give one or more");
        const CandidateTerms query{span_of(starts), span_of(terms), span_of(weights)};
        auto search = searches_.take();
        search->reserve(old_rows.size(), rows.size());
        const i64 width = i64(values.shape(1));
        for (i64 d = begin; d < end; d++) {
            const i64 row = d - offset;
            search->accumulate(d, row, query, postings_.lists, later, budget);
            search->select_candidates(candidates, old_rows, rows);
            search->compute_entries(d, width, old_rows, rows, mean_square_);
            for (i64 i = 0; i < search->size(); i++) {
                values(row, i) = search->value(i);
                neighbours(row, i) = search->document(i);
            }
        }
        searches_.give(std::move(search));
    }

  private:
    Documents documents_;
    ListsObject postings_;
    f64 mean_square_;
    Pool<NeighbourSearch> searches_;
};

void insert_neighbours(Array1<const i32> row_of, Array2<const i32> pairs, Array1<const f32> values,
                       Array2<i32> neighbours, Array2<f32> strongest) {
    const i64 rows = length(strongest), width = i64(strongest.shape(1));
    require(length(pairs) == length(values) && pairs.shape(1) == 2, "pairs: not two documents for each value");
    require(length(neighbours) == rows && i64(neighbours.shape(1)) == width && width > 0,
            "neighbours and strongest: their shapes differ");
    for (i64 i = 0; i < length(values); i++) {
        const i32 document = pairs(i, 0);
        require(document >= 0 && document < length(row_of), "pairs: a document does not exist");
        require(row_of(document) >= 1 && row_of(document) <= rows, "row_of: a document has no row");
    }
    for (i64 i = 0; i < length(values); i++) {
        const i64 row = row_of(pairs(i, 0)) - 1;
        f32* kept = strongest.data() + row * width;
        i32* documents = neighbours.data() + row * width;
        if (!(values(i) > kept[width - 1])) continue;
        i64 place = width - 1;
        for (; place > 0 && kept[place - 1] < values(i); place--) {
            kept[place] = kept[place - 1];
            documents[place] = documents[place - 1];
        }
        kept[place] = values(i);
        documents[place] = pairs(i, 1);
    }
}

}  // namespace

void bind_neighbours(nb::module_& module) {
    auto bind_truncate = [&]<class W>(W) {
        module.def("truncate_postings", without_gil(&truncate_postings<W>), nb::arg("starts"), nb::arg("documents"),
                   nb::arg("weights"), nb::arg("scales"), nb::arg("kept_starts"), nb::arg("kept_documents"),
                   nb::arg("kept_values"), R"(
            Write the largest postings of each feature, times the scales of their documents.

            starts, documents, weights  all postings, as in CSC
            kept_starts                 (F + 1,) where those that are kept begin
            Of equal values the first documents are kept. Cost O(nnz).
        )");
    };
    bind_truncate(f32());
    bind_truncate(f64());
    nb::class_<KnnPart>(module, "KnnPart", R"(
        Documents with doc ids from `first` on, among which neighbours are found.

        starts, columns, weights      features of n documents, as in CSR; no weight is negative
        scales, towards_mean          (n,) S and SΦμ; `mean_square` is ‖μ‖²
        posting_starts, posting_documents, posting_values
                                      truncated postings of each of F features, with documents
                                      numbered from 0, ascending
        Cost of the checks: O(nnz).
    )")
        .def(nb::init<i64, Array1<const i64>, Array1<const i32>, Array1<const f32>, Array1<const f32>,
                      Array1<const f32>, f32, Array1<const i64>, Array1<const i32>, Array1<const f32>>(),
             nb::arg("first"), nb::arg("starts"), nb::arg("columns"), nb::arg("weights"), nb::arg("scales"),
             nb::arg("towards_mean"), nb::arg("mean_square"), nb::arg("posting_starts"), nb::arg("posting_documents"),
             nb::arg("posting_values"));
    nb::class_<KnnSearcher>(module, "KnnSearcher", R"(
        Finds the neighbours of the documents of a part in all parts, one after another.

        counts    (F,) postings of each feature in all parts
        features  of a document that are its query, at most; `postings` that they have
        Memory: 4 F bytes for each thread that calls it.
    )")
        .def(nb::init<const KnnPart&, Array1<const i64>, i64, i64>(), nb::arg("own"), nb::arg("counts"), nb::kw_only(),
             nb::arg("features"), nb::arg("postings"))
        .def("find_candidates", without_gil(&KnnSearcher::find_candidates), nb::arg("part"), nb::arg("first"),
             nb::arg("keys"), R"(
            Add the candidates in a part to those of earlier parts, for documents from `first` on.

            keys  (r, candidates) of the best; 0 at first
        )")
        .def("add_entries", without_gil(&KnnSearcher::add_entries), nb::arg("part"), nb::arg("first"), nb::arg("keys"),
             nb::arg("columns"), nb::arg("values"), R"(
            Add the entries of K for the candidates in a part, and for the documents themselves.

            keys             of `find_candidates`, after it was called for all parts
            columns, values  (r, width) the largest positive entries, in document order; 0 at first
        )");
    module.def("compact_rows", without_gil(&compact_rows), nb::arg("columns"), nb::arg("values"), nb::arg("sizes"), R"(
        Move the first sizes[i] entries of all rows i to the front of their arrays.

        Return their number: (n, width), (n, width), (n,).
    )");
    nb::class_<Documents>(module, "KernelDocuments", R"(
        Documents as the kernel needs them; views of the arrays.

        starts    (N + 1,) start of the features of each
        features  packed: number << 8 | level
        vectors   (N, w) coordinates of each, and as float32 its step, S and SΦμ
        boosts    (N,) S · K(x,x)^-¼
    )")
        .def(nb::init<Array1<const i64>, Array1<const u32>, Array2<const i8>, Array1<const f32>>(), nb::arg("starts"),
             nb::arg("features"), nb::arg("vectors"), nb::arg("boosts"));
    nb::class_<InvertedFile>(module, "LaterPostings", R"(
        Postings of the documents written after a build, by term, below `term_count`.

        Not for several threads while it is appended to. Memory: 24 bytes a term, 8 to 16 a posting.
    )")
        .def(nb::init<i64>(), nb::arg("term_count"))
        .def("append", without_gil(&InvertedFile::append), nb::arg("starts"), nb::arg("terms"), nb::arg("shares"), R"(
            Append the next documents.

            starts  (n + 1,) start of the terms of each, and the end of the last
            terms   of the documents
            shares  their saturations
        )");
    nb::class_<FoldInNeighbours>(module, "FoldInNeighbours", R"(
        Finds the nearest neighbours of later documents; `delta.folding` has the method.

        documents, postings  of the build
        mean_square          ‖μ‖²
        Buffers for each thread that searches: 5 bytes a document and one a feature.
    )")
        .def(nb::init<const Documents&, const ListsObject&, f64>(), nb::arg("documents"), nb::arg("postings"),
             nb::arg("mean_square"))
        .def("search", without_gil(&FoldInNeighbours::search), nb::arg("begin"), nb::arg("end"), nb::arg("offset"),
             nb::arg("starts"), nb::arg("terms"), nb::arg("weights"), nb::arg("later"), nb::arg("documents"),
             nb::arg("budget"), nb::arg("candidates"), nb::arg("values"), nb::arg("neighbours"), R"(
        Write the strongest entries of later documents begin..end among all before each.

        starts, terms, weights  of the terms of documents from number `offset` on, as in CSR
        later                   postings of the later documents
        documents               these
        budget                  postings of the build that are read for a document, at most
        candidates              documents for which K is computed, at most
        values, neighbours      output, by document from `offset`: strongest first, and the numbers
                                of the documents; both 0 at first
    )");
    module.def("insert_neighbours", without_gil(&insert_neighbours), nb::arg("row_of"), nb::arg("pairs"),
               nb::arg("values"), nb::arg("neighbours"), nb::arg("strongest"), R"(
        Insert entries in rows of the strongest, after entries of equal value; drop the weakest.

        row_of      (N,) row of each document, from 1
        pairs       (R, 2) the document that gets the entry, and its neighbour
        values      (R,) of the entries
        neighbours, strongest  (rows, width), changed here
    )");
}

}  // namespace klsa
