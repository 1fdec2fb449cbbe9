// Bindings of products.hpp.
#define KLSA_KERNELS "products.hpp"
#include <variant>

#include "arrays.hpp"
#include "bindings.hpp"
#include "for_each_instruction_set.hpp"

namespace klsa {
namespace {

class Features {
  public:
    using Offsets = Array1<const i64>;

    template <class W>
    Features(Array1<const i32> columns, Array1<const W> weights, i64 width)
        : columns_(columns), weights_(weights), width_(width) {
        require(length(columns) == length(weights), "columns and weights: their lengths differ");
        require(width >= 0, "width: is negative");
        require_between(columns, 0, width, "columns");
    }

    void find_edge(Offsets begins, Offsets ends, i64 edge, Array1<i64> out) const {
        check_offsets(begins, ends);
        require(length(out) == length(begins), "out: its length is not the number of documents");
        const i32* columns = columns_.data();
        for (i64 d = 0; d < length(begins); d++)
            out(d) = std::lower_bound(columns + begins(d), columns + ends(d), edge) - columns;
    }

    template <class X>
    void add_to_features(Offsets begins, Offsets ends, Array2<const X> blocks, Array2<X> sums) const {
        check_offsets(begins, ends);
        check_blocks(length(begins), blocks, sums);
        std::visit(
            [&](const auto& weights) {
                KLSA_DISPATCH(add_to_features(columns_.data(), weights.data(), begins.data(), ends.data(),
                                              length(begins), blocks.data(), i64(sums.shape(1)), sums.data()));
            },
            weights_);
    }

    template <class X>
    void add_to_documents(Offsets begins, Offsets ends, Array2<const X> sums, Array2<X> out) const {
        check_offsets(begins, ends);
        check_blocks(length(begins), out, sums);
        std::visit(
            [&](const auto& weights) {
                KLSA_DISPATCH(add_to_documents(columns_.data(), weights.data(), begins.data(), ends.data(),
                                               length(begins), sums.data(), i64(sums.shape(1)), out.data()));
            },
            weights_);
    }

  private:
    void check_offsets(const Offsets& begins, const Offsets& ends) const {
        require(length(begins) == length(ends), "begins and ends: their lengths differ");
        bool wrong = false;
        for (i64 d = 0; d < length(begins); d++)
            wrong |= begins(d) < 0 || begins(d) > ends(d) || ends(d) > length(columns_);
        require(!wrong, "begins and ends: a document has no valid range of entries");
    }

    template <class Documents, class Sums>
    void check_blocks(i64 documents, const Documents& rows, const Sums& sums) const {
        require(length(rows) == documents, "the block of documents has another number of rows");
        require(length(sums) == width_, "the block of features has another number of rows");
        require(rows.shape(1) == sums.shape(1), "the blocks have different numbers of columns");
    }

    Array1<const i32> columns_;
    std::variant<Array1<const f32>, Array1<const f64>> weights_;
    i64 width_;
};

}  // namespace

void bind_products(nb::module_& module) {
    nb::class_<Features> features(module, "Features", R"(
        The entries of a sparse matrix Φ in rows (documents): column and weight of each.

        columns  (nnz,) in [0, width)
        weights  (nnz,)
        width    number of columns (features)

        Methods take the first entry and the one after the last of each document, (N,) each. Sums are
        in the order of documents, then of entries.
    )");
    features
        .def(nb::init<Array1<const i32>, Array1<const f32>, i64>(), exact("columns"), exact("weights"),
             nb::arg("width"))
        .def(nb::init<Array1<const i32>, Array1<const f64>, i64>(), exact("columns"), exact("weights"),
             nb::arg("width"))
        .def("find_edge", without_gil(&Features::find_edge), exact("begins"), exact("ends"), nb::arg("edge"),
             exact("out"), R"(
            Write to `out` (N,) the first entry of each document from column `edge` on.

            The columns of a document must ascend. Cost O(N log n).
        )");
    auto bind = [&]<class X>(X) {
        features
            .def("add_to_features", without_gil(&Features::add_to_features<X>), exact("begins"), exact("ends"),
                 exact("blocks"), exact("sums"), "Add Φᵀ `blocks` to `sums`: (N, b) → (width, b). Cost O(nnz · b).")
            .def("add_to_documents", without_gil(&Features::add_to_documents<X>), exact("begins"), exact("ends"),
                 exact("sums"), exact("out"), "Add Φ `sums` to `out`: (width, b) → (N, b). Cost O(nnz · b).");
    };
    bind(f32());
    bind(f64());
}

}  // namespace klsa
