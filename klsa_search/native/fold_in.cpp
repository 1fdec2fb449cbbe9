// Bindings of fold_in.hpp.
#include "fold_in.hpp"

#include "arrays.hpp"
#include "bindings.hpp"
#include "pool.hpp"

namespace klsa {
namespace {

using Scalars = nb::ndarray<const f32, nb::ndim<2>, nb::device::cpu>;

class Documents {
  public:
    Documents(Array1<const i64> starts, Array1<const u32> features, Scalars scalars, Array1<const f32> boosts)
        : starts_(starts), features_(features), scalars_(scalars), boosts_(boosts) {
        const i64 size = length(boosts);
        require(length(starts) == size + 1, "starts: give the start of each document, and the end of the last");
        require_offsets(starts.data(), length(starts), length(features), "starts");
        require(length(scalars) == size && scalars.shape(1) == 3, "scalars: give three for each document");
        require(scalars.stride(1) == 1, "scalars: those of a document must be side by side");
    }

    KernelRows rows() const {
        return {{starts_.data(), starts_.shape(0)},
                {features_.data(), features_.shape(0)},
                scalars_.data(),
                scalars_.stride(0),
                {boosts_.data(), boosts_.shape(0)}};
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
        require_offsets(starts.data(), length(starts), length(terms), "starts");
        require(length(terms) == length(shares), "terms and shares: their lengths differ");
        require_between(terms.data(), length(terms), 0, i64(of_terms.size()), "terms");
        for (i64 d = 0; d + 1 < length(starts); d++, documents++)
            for (i64 p = starts(d); p < starts(d + 1); p++)
                of_terms[terms(p)].push_back({i32(documents), shares(p)});
    }
};

class FoldInNeighbours {
  public:
    FoldInNeighbours(const Documents& documents, Array1<const i64> starts, Array1<const u32> entries,
                     Array1<const i64> run_starts, Array2<const u16> runs, int block_bits, f64 mean_square)
        : documents_(documents),
          starts_(starts),
          entries_(entries),
          run_starts_(run_starts),
          runs_(runs),
          block_bits_(block_bits),
          mean_square_(mean_square) {
        require(length(starts) > 0 && length(starts) == length(run_starts),
                "starts and run_starts: they have different numbers of terms");
        require(block_bits >= 0 && block_bits <= 16, "block_bits: an offset has 16 bits");
        require(runs.shape(1) == 3, "runs: they have three columns");
        require_offsets(starts.data(), length(starts), length(entries), "starts");
        require_offsets(run_starts.data(), length(run_starts), length(runs), "run_starts");
    }

    // Write the rows of documents begin..end, of which the terms are numbered from `offset`.
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
        require_offsets(starts.data(), length(starts), length(terms), "starts");
        require_between(terms.data(), length(terms), 0, std::min(length(starts_) - 1, i64(later.of_terms.size())),
                        "terms");
        require(candidates > 0 && candidates <= NeighbourSearch::LAST, "candidates: give one or more");
        const CandidateTerms query{
            {starts.data(), starts.shape(0)}, {terms.data(), terms.shape(0)}, {weights.data(), weights.shape(0)}};
        const BuildPostings old{{starts_.data(), starts_.shape(0)},
                                {entries_.data(), entries_.shape(0)},
                                {run_starts_.data(), run_starts_.shape(0)},
                                runs_.data(),
                                block_bits_};
        auto search = searches_.take();
        search->reserve(old_rows.size(), rows.size());
        const i64 width = i64(values.shape(1));
        for (i64 d = begin; d < end; d++) {
            const i64 row = d - offset;
            search->accumulate(d, row, query, old, later, budget);
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
    Array1<const i64> starts_;
    Array1<const u32> entries_;
    Array1<const i64> run_starts_;
    Array2<const u16> runs_;
    int block_bits_;
    f64 mean_square_;
    Pool<NeighbourSearch> searches_;
};

}  // namespace

void bind_fold_in(nb::module_& module) {
    nb::class_<Documents>(module, "KernelDocuments")
        .def(nb::init<Array1<const i64>, Array1<const u32>, Scalars, Array1<const f32>>(), exact("starts"),
             exact("features"), exact("scalars"), exact("boosts"));
    nb::class_<InvertedFile>(module, "LaterPostings")
        .def(nb::init<i64>(), nb::arg("term_count"))
        .def("append", without_gil(&InvertedFile::append), exact("starts"), exact("terms"), exact("shares"));
    nb::class_<FoldInNeighbours>(module, "FoldInNeighbours")
        .def(nb::init<const Documents&, Array1<const i64>, Array1<const u32>, Array1<const i64>, Array2<const u16>, int,
                      f64>(),
             nb::arg("documents"), exact("starts"), exact("entries"), exact("run_starts"), exact("runs"),
             nb::arg("block_bits"), nb::arg("mean_square"))
        .def("search", without_gil(&FoldInNeighbours::search), nb::arg("begin"), nb::arg("end"), nb::arg("offset"),
             exact("starts"), exact("terms"), exact("weights"), nb::arg("later"), nb::arg("documents"),
             nb::arg("budget"), nb::arg("candidates"), exact("values"), exact("neighbours"));
}

}  // namespace klsa
