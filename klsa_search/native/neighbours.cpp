// Bindings of the nearest neighbours.
#include "neighbours.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "arrays.hpp"
#include "bindings.hpp"
#include "pool.hpp"

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

class KnnPart {
  public:
    KnnPart(i64 first, Array1<const i64> starts, Array1<const i32> columns, Array1<const f32> weights,
            Array1<const f32> scales, Array1<const f32> towards_mean, f32 mean_square, Array1<const i64> posting_starts,
            Array1<const i32> posting_documents, Array1<const f32> posting_values)
        : arrays_{first,
                  length(scales),
                  starts.data(),
                  columns.data(),
                  weights.data(),
                  scales.data(),
                  towards_mean.data(),
                  mean_square,
                  posting_starts.data(),
                  posting_documents.data(),
                  posting_values.data()},
          features_(length(posting_starts) - 1),
          owners_{starts, posting_starts},
          columns_{columns, posting_documents},
          values_{weights, scales, towards_mean, posting_values} {
        const i64 documents = length(scales);
        require(first >= 0 && first + documents < LOW, "first: a doc id has more than 32 bits");
        require(length(starts) == documents + 1 && length(towards_mean) == documents,
                "starts, scales and towards_mean: their numbers of documents differ");
        require(features_ >= 0, "posting_starts: it is empty");
        require(length(columns) == length(weights), "columns and weights: their lengths differ");
        require(length(posting_documents) == length(posting_values), "postings: their lengths differ");
        require_offsets(starts, length(columns), "starts");
        require_between(columns, 0, features_, "columns");
        require_offsets(posting_starts, length(posting_documents), "posting_starts");
        require_between(posting_documents, 0, documents, "posting_documents");
        bool is_wrong = false;
        for (i64 f = 0; f < features_; f++)
            for (i64 p = posting_starts(f) + 1; p < posting_starts(f + 1); p++)
                is_wrong |= posting_documents(p) <= posting_documents(p - 1);
        require(!is_wrong, "posting_documents: those of a feature do not ascend");
        for (i64 p = 0; p < length(weights); p++) is_wrong |= !(weights(p) >= 0);
        for (i64 p = 0; p < length(posting_values); p++) is_wrong |= !(posting_values(p) >= 0);
        require(!is_wrong, "weights and posting_values: a value is negative or not a number");
    }

    const KnnDocuments& arrays() const { return arrays_; }
    i64 features() const { return features_; }

  private:
    KnnDocuments arrays_;
    i64 features_;
    std::vector<Array1<const i64>> owners_;
    std::vector<Array1<const i32>> columns_;
    std::vector<Array1<const f32>> values_;
};

class KnnSearcher {
  public:
    KnnSearcher(std::vector<std::shared_ptr<KnnPart>> parts, i64 own, i64 features, i64 postings, i64 candidates)
        : limits_{features, postings, candidates} {
        require(own >= 0 && own < i64(parts.size()), "own: there is no such part");
        require(features > 0 && postings > 0 && candidates > 0, "a limit is not positive");
        own_ = own;
        owners_ = parts;
        for (const auto& part : parts) {
            require(part != nullptr, "parts: None is not a part");
            if (parts_.empty()) {
                features_ = part->features();
                starts_.assign(size_t(features_ + 1), 0);
            }
            require(part->features() == features_, "parts: their numbers of features differ");
            parts_.push_back(part->arrays());
            for (i64 f = 0; f < features_; f++)
                starts_[size_t(f + 1)] += part->arrays().posting_starts[f + 1] - part->arrays().posting_starts[f];
        }
        // A feature of a single document has no postings.
        for (size_t f = 1; f < starts_.size(); f++) starts_[f] = starts_[f - 1] + (starts_[f] > 1 ? starts_[f] : 0);
    }

    void write_rows(Array1<const i64> rows, Array2<i32> columns, Array2<f32> values, Array1<i32> sizes) {
        const KnnDocuments& own = parts_[size_t(own_)];
        require_between(rows, 0, own.documents, "rows");
        require(length(columns) == length(rows) && length(values) == length(rows) && length(sizes) == length(rows),
                "columns, values and sizes: their numbers of rows differ");
        require(columns.shape(1) == values.shape(1), "columns and values: their widths differ");
        auto borrowed = unused_.take();
        KnnBuffers& buffers = *borrowed;
        buffers.sums.resize(KNN_BLOCK);
        buffers.dense.resize(size_t(features_));
        const i64 width = i64(columns.shape(1));
        for (i64 i = 0; i < length(rows); i++)
            sizes(i) = i32(
                KLSA_DISPATCH(find_neighbours(own, rows(i), parts_.data(), i64(parts_.size()), starts_.data(), limits_,
                                              buffers, width, columns.data() + i * width, values.data() + i * width)));
        unused_.give(std::move(borrowed));
    }

  private:
    KnnLimits limits_;
    i64 own_ = 0, features_ = 0;
    std::vector<std::shared_ptr<KnnPart>> owners_;
    std::vector<KnnDocuments> parts_;
    std::vector<i64> starts_;
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

}  // namespace

void bind_neighbours(nb::module_& module) {
    auto bind_truncate = [&]<class W>(W) {
        module.def("truncate_postings", without_gil(&truncate_postings<W>), exact("starts"), exact("documents"),
                   exact("weights"), exact("scales"), exact("kept_starts"), exact("kept_documents"),
                   exact("kept_values"), R"(
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
             nb::arg("first"), exact("starts"), exact("columns"), exact("weights"), exact("scales"),
             exact("towards_mean"), nb::arg("mean_square"), exact("posting_starts"), exact("posting_documents"),
             exact("posting_values"));
    nb::class_<KnnSearcher>(module, "KnnSearcher", R"(
        Finds the neighbours of the documents of part `own` in all parts; `KnnParams` has limits.

        Memory: 8 (n + F) bytes for each thread that calls it, n the documents of the largest part.
    )")
        .def(nb::init<std::vector<std::shared_ptr<KnnPart>>, i64, i64, i64, i64>(), nb::arg("parts"), nb::arg("own"),
             nb::kw_only(), nb::arg("features"), nb::arg("postings"), nb::arg("candidates"))
        .def("write_rows", without_gil(&KnnSearcher::write_rows), exact("rows"), exact("columns"), exact("values"),
             exact("sizes"), R"(
            Write the largest positive entries of rows of K, in document order.

            rows             (r,) documents, numbered from 0 in their part
            columns, values  (r, width), of which sizes[i] entries are written in row i
        )");
    module.def("compact_rows", without_gil(&compact_rows), exact("columns"), exact("values"), exact("sizes"), R"(
        Move the first sizes[i] entries of all rows i to the front of their arrays.

        Return their number: (n, width), (n, width), (n,).
    )");
}

}  // namespace klsa
