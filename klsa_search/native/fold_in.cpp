// Bindings of fold_in.hpp.
#include "fold_in.hpp"

#include <memory>
#include <mutex>

#include "arrays.hpp"
#include "bindings.hpp"

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

class InvertedFile {
  public:
    InvertedFile(Array1<const i64> starts, Array1<const i32> documents, Array1<const u16> shares,
                 Array1<const i32> heads, Array2<const u32> links)
        : starts_(starts), documents_(documents), shares_(shares), heads_(heads), links_(links) {
        require(length(starts) == length(heads) + 1, "starts and heads: they have different numbers of terms");
        require(length(documents) == length(shares), "documents and shares: their lengths differ");
        require_offsets(starts.data(), length(starts), length(documents), "starts");
        require(links.shape(1) == 3, "links: they have three columns");
    }

    LaterPostings postings() const {
        return {{starts_.data(), starts_.shape(0)},
                {documents_.data(), documents_.shape(0)},
                {shares_.data(), shares_.shape(0)},
                {heads_.data(), heads_.shape(0)},
                links_.data(),
                length(links_)};
    }

    i64 terms() const { return length(heads_); }

  private:
    Array1<const i64> starts_;
    Array1<const i32> documents_;
    Array1<const u16> shares_;
    Array1<const i32> heads_;
    Array2<const u32> links_;
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
        require_between(terms.data(), length(terms), 0, std::min(length(starts_) - 1, later.terms()), "terms");
        require(candidates > 0 && candidates <= NeighbourSearch::LAST, "candidates: give one or more");
        const CandidateTerms query{
            {starts.data(), starts.shape(0)}, {terms.data(), terms.shape(0)}, {weights.data(), weights.shape(0)}};
        const BuildPostings old{{starts_.data(), starts_.shape(0)},
                                {entries_.data(), entries_.shape(0)},
                                {run_starts_.data(), run_starts_.shape(0)},
                                runs_.data(),
                                block_bits_};
        auto search = take();
        search->reserve(old_rows.size(), rows.size());
        const i64 width = i64(values.shape(1));
        for (i64 d = begin; d < end; d++) {
            const i64 row = d - offset;
            search->accumulate(d, row, query, old, later.postings(), budget);
            search->select_candidates(candidates, old_rows, rows);
            search->compute_entries(d, width, old_rows, rows, mean_square_);
            for (i64 i = 0; i < search->size(); i++) {
                values(row, i) = search->value(i);
                neighbours(row, i) = search->document(i);
            }
        }
        give_back(std::move(search));
    }

  private:
    std::unique_ptr<NeighbourSearch> take() {
        const std::lock_guard guard(mutex_);
        if (searches_.empty()) return std::make_unique<NeighbourSearch>();
        auto search = std::move(searches_.back());
        searches_.pop_back();
        return search;
    }

    void give_back(std::unique_ptr<NeighbourSearch> search) {
        const std::lock_guard guard(mutex_);
        searches_.push_back(std::move(search));
    }

    Documents documents_;
    Array1<const i64> starts_;
    Array1<const u32> entries_;
    Array1<const i64> run_starts_;
    Array2<const u16> runs_;
    int block_bits_;
    f64 mean_square_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<NeighbourSearch>> searches_;  // not in use
};

void append_links(Array1<const i64> starts, Array1<const i32> terms, Array1<const u16> shares, i64 first, i64 link,
                  Array1<i32> heads, Array2<u32> links) {
    require(length(starts) > 0, "starts: is empty");
    require_offsets(starts.data(), length(starts), length(terms), "starts");
    require_between(terms.data(), length(terms), 0, length(heads), "terms");
    require(length(terms) == length(shares) && length(terms) == length(links) && links.shape(1) == 3,
            "terms, shares and links: their lengths differ");
    for (i64 d = 0; d + 1 < length(starts); d++) {
        for (i64 p = starts(d); p < starts(d + 1); p++) {
            links(p, 0) = u32(heads(terms(p)));
            links(p, 1) = u32(first + d);
            links(p, 2) = shares(p);
            heads(terms(p)) = i32(link + p);
        }
    }
}

auto invert(Array1<const i64> starts, Array1<const i32> terms, Array1<const u16> shares, i64 term_count) {
    require(length(starts) > 0, "starts: is empty");
    require(term_count >= 0, "term_count: is negative");
    require_offsets(starts.data(), length(starts), length(terms), "starts");
    require(length(terms) == length(shares), "terms and shares: their lengths differ");
    require_between(terms.data(), length(terms), 0, term_count, "terms");
    std::vector<i64> since(term_count + 1, 0);
    std::vector<i32> documents(length(terms));
    std::vector<u16> out_shares(length(terms));
    {
        WithoutGil released;
        for (i64 p = 0; p < length(terms); p++) since[terms(p) + 1]++;
        for (i64 term = 0; term < term_count; term++) since[term + 1] += since[term];
        std::vector<i64> places(since.begin(), since.end() - 1);
        for (i64 d = 0; d + 1 < length(starts); d++) {
            for (i64 p = starts(d); p < starts(d + 1); p++) {
                const i64 place = places[terms(p)]++;
                documents[place] = i32(d);
                out_shares[place] = shares(p);
            }
        }
    }
    return nb::make_tuple(owned(std::move(since)), owned(std::move(documents)), owned(std::move(out_shares)));
}

}  // namespace

void bind_fold_in(nb::module_& module) {
    nb::class_<Documents>(module, "KernelDocuments")
        .def(nb::init<Array1<const i64>, Array1<const u32>, Scalars, Array1<const f32>>(), exact("starts"),
             exact("features"), exact("scalars"), exact("boosts"));
    nb::class_<InvertedFile>(module, "LaterPostings")
        .def(nb::init<Array1<const i64>, Array1<const i32>, Array1<const u16>, Array1<const i32>, Array2<const u32>>(),
             exact("starts"), exact("documents"), exact("shares"), exact("heads"), exact("links"));
    nb::class_<FoldInNeighbours>(module, "FoldInNeighbours")
        .def(nb::init<const Documents&, Array1<const i64>, Array1<const u32>, Array1<const i64>, Array2<const u16>, int,
                      f64>(),
             nb::arg("documents"), exact("starts"), exact("entries"), exact("run_starts"), exact("runs"),
             nb::arg("block_bits"), nb::arg("mean_square"))
        .def("search", without_gil(&FoldInNeighbours::search), nb::arg("begin"), nb::arg("end"), nb::arg("offset"),
             exact("starts"), exact("terms"), exact("weights"), nb::arg("later"), nb::arg("documents"),
             nb::arg("budget"), nb::arg("candidates"), exact("values"), exact("neighbours"));
    module.def("append_links", without_gil(&append_links), exact("starts"), exact("terms"), exact("shares"),
               nb::arg("first"), nb::arg("link"), exact("heads"), exact("links"));
    module.def("invert_terms", &invert, exact("starts"), exact("terms"), exact("shares"), nb::arg("term_count"));
}

}  // namespace klsa
