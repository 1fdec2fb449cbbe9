// Bindings of fold_in.hpp.
#include "fold_in.hpp"

#include "arrays.hpp"
#include "bindings.hpp"
#include "pool.hpp"
#include "posting_lists.hpp"

namespace klsa {
namespace {

using Scalars = nb::ndarray<const f32, nb::ndim<2>, nb::device::cpu>;

class Documents {
  public:
    Documents(Array1<const i64> starts, Array1<const u32> features, Scalars scalars, Array1<const f32> boosts)
        : starts_(starts), features_(features), scalars_(scalars), boosts_(boosts) {
        const i64 size = length(boosts);
        require(length(starts) == size + 1, "starts: give the start of each document, and the end of the last");
        require_offsets(starts, length(features), "starts");
        require(length(scalars) == size && scalars.shape(1) == 3, "scalars: give three for each document");
        require(scalars.stride(1) == 1, "scalars: those of a document must be side by side");
    }

    KernelRows rows() const {
        return {span_of(starts_), span_of(features_), scalars_.data(), scalars_.stride(0), span_of(boosts_)};
    }

  private:
    Array1<const i64> starts_;
    Array1<const u32> features_;
    Scalars scalars_;
    Array1<const f32> boosts_;
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

}  // namespace

void bind_fold_in(nb::module_& module) {
    nb::class_<Documents>(module, "KernelDocuments", R"(
        Documents as the kernel needs them; views of the arrays.

        starts    (N + 1,) start of the features of each
        features  packed: number << 8 | level
        scalars   (N, 3) step, S and SΦμ; those of a document side by side
        boosts    (N,) S · K(x,x)^-¼
    )")
        .def(nb::init<Array1<const i64>, Array1<const u32>, Scalars, Array1<const f32>>(), exact("starts"),
             exact("features"), exact("scalars"), exact("boosts"));
    nb::class_<InvertedFile>(module, "LaterPostings", R"(
        Postings of the documents written after a build, by term, below `term_count`.

        Not for several threads while it is appended to. Memory: 24 bytes a term, 8 to 16 a posting.
    )")
        .def(nb::init<i64>(), nb::arg("term_count"))
        .def("append", without_gil(&InvertedFile::append), exact("starts"), exact("terms"), exact("shares"), R"(
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
             exact("starts"), exact("terms"), exact("weights"), nb::arg("later"), nb::arg("documents"),
             nb::arg("budget"), nb::arg("candidates"), exact("values"), exact("neighbours"), R"(
        Write the strongest entries of later documents begin..end among all before each.

        starts, terms, weights  of the terms of documents from number `offset` on, as in CSR
        later                   postings of the later documents
        documents               these
        budget                  postings of the build that are read for a document, at most
        candidates              documents for which K is computed, at most
        values, neighbours      output, by document from `offset`: strongest first, and the numbers
                                of the documents; both 0 at first
    )");
}

}  // namespace klsa
