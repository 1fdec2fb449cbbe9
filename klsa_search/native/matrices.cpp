// Matrices in rows: products, sums and packed entries of sparse ones, cosines of dense ones.
#define KLSA_KERNELS "products.hpp"
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

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
        : columns_(columns), weights_(Kept(weights)), width_(width) {
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

    Kept<Array1<const i32>> columns_;
    std::variant<Kept<Array1<const f32>>, Kept<Array1<const f64>>> weights_;
    i64 width_;
};

using Starts = Array1<const i64>;
using Columns = Array1<const i32>;

template <class W>
void squares_of_rows(Starts starts, Array1<const W> data, Array1<f64> sums) {
    require(length(starts) == length(sums) + 1, "sums: its length is not the number of rows");
    require_offsets(starts, length(data), "starts");
    for (i64 row = 0; row < length(sums); row++) {
        f64 total = 0;
        for (i64 p = starts(row); p < starts(row + 1); p++) total += f64(data(p)) * f64(data(p));
        sums(row) = total;
    }
}

template <class W, class X>
void scale_rows(Starts starts, Array1<const W> data, Array1<const f64> scales, Array1<X> scaled) {
    require(length(starts) == length(scales) + 1, "scales: its length is not the number of rows");
    require(length(data) == length(scaled), "data and scaled: their lengths differ");
    require_offsets(starts, length(data), "starts");
    for (i64 row = 0; row < length(scales); row++)
        for (i64 p = starts(row); p < starts(row + 1); p++) scaled(p) = X(f64(data(p)) * scales(row));
}

template <class W>
void bind_sums(nb::module_& module) {
    module.def("squares_of_rows", without_gil(&squares_of_rows<W>), nb::arg("starts"), nb::arg("data"), nb::arg("sums"),
               "Write Σ_f x² of each row to `sums`: (m,). Cost O(nnz).");
    auto bind_scale = [&]<class X>(X) {
        module.def("scale_rows", without_gil(&scale_rows<W, X>), nb::arg("starts"), nb::arg("data"), nb::arg("scales"),
                   nb::arg("scaled"), "Write each row times its scale to `scaled`: (nnz,). Cost O(nnz).");
    };
    bind_scale(f32());
    bind_scale(f64());
}

constexpr i64 COLUMNS = i64(1) << 24;
constexpr f32 LEVELS = 255;

// The level of a value of a row whose levels are `step` apart, at least 1.
template <class W>
u32 level_of(W value, f32 step) {
    const W level = std::nearbyint(value / W(step));
    return level > 1 ? u32(std::min(level, W(LEVELS))) : 1;
}

template <class W>
i64 pack_rows(Starts starts, Columns columns, Array1<const W> values, std::optional<Columns> ranks,
              Array1<i64> packed_starts, Array1<u32> packed, Array1<f32> steps) {
    require(length(starts) == length(steps) + 1 && length(packed_starts) == length(starts),
            "starts, packed_starts and steps: their numbers of rows differ");
    require(length(columns) == length(values) && length(packed) == length(values),
            "columns, values and packed: their lengths differ");
    require_offsets(starts, length(columns), "starts");
    require_between(columns, 0, ranks ? length(*ranks) : i64(1) << 31, "columns");
    if (ranks) require_between(*ranks, 0, i64(1) << 31, "ranks");
    i64 at = packed_starts(0) = 0;
    for (i64 row = 0; row < length(steps); row++) {
        W largest = 0;
        for (i64 p = starts(row); p < starts(row + 1); p++) largest = std::max(largest, values(p));
        const f32 step = steps(row) = f32(largest) / LEVELS;
        for (i64 p = starts(row); p < starts(row + 1); p++) {
            const i64 column = ranks ? (*ranks)(columns(p)) : columns(p);
            if (column < COLUMNS && values(p) > 0) packed(at++) = u32(column) << 8 | level_of(values(p), step);
        }
        packed_starts(row + 1) = at;
    }
    return at;
}

// An entry of a row; ties are ordered by `order`.
struct Entry {
    f32 value;
    i64 order;
    i32 column;
};

void pack_table(Starts starts, Columns columns, Array1<const f32> values, i64 first, Array1<const i64> ordinals,
                Array2<u32> table, Array1<f32> steps, Array2<u32> documents, Array2<u8> levels) {
    const i64 rows = length(steps), width = i64(table.shape(1));
    require(length(starts) == rows + 1 && length(table) == rows,
            "starts, table and steps: their numbers of rows differ");
    require(length(columns) == length(values), "columns and values: their lengths differ");
    require_offsets(starts, length(columns), "starts");
    require_between(columns, 0, length(ordinals), "columns");
    require_between(ordinals, 0, i64(1) << 32, "ordinals");
    require(first >= 0 && first <= length(ordinals) && rows <= COLUMNS, "first: there is no such column");
    const i64 outside = first == 0 && rows >= length(ordinals) ? 0 : width;
    require(length(documents) == rows && length(levels) == rows && i64(documents.shape(1)) >= outside &&
                documents.shape(1) == levels.shape(1),
            "table, documents and levels: their shapes differ");
    std::fill_n(table.data(), table.size(), 0);
    std::fill_n(documents.data(), documents.size(), 0);
    std::fill_n(levels.data(), levels.size(), 0);
    std::vector<Entry> entries;
    for (i64 row = 0; row < rows; row++) {
        entries.clear();
        for (i64 p = starts(row); p < starts(row + 1); p++)
            if (columns(p) != first + row && values(p) > 0)
                entries.push_back({values(p), ordinals(columns(p)), columns(p)});
        const size_t kept = std::min(entries.size(), size_t(width));
        std::partial_sort(
            entries.begin(), entries.begin() + i64(kept), entries.end(),
            [](const Entry& a, const Entry& b) { return a.value != b.value ? a.value > b.value : a.order < b.order; });
        const f32 step = steps(row) = kept ? entries[0].value / LEVELS : 0;
        i64 here = 0, remote = 0;
        for (size_t i = 0; i < kept; i++) {
            const u32 level = level_of(entries[i].value, step);
            const i64 column = entries[i].column - first;
            if (column >= 0 && column < rows) {
                table(row, here++) = u32(column) << 8 | level;
            } else {
                documents(row, remote) = u32(entries[i].order);
                levels(row, remote++) = u8(level);
            }
        }
    }
}

template <class W>
void bind_pack_rows(nb::module_& module) {
    module.def("pack_rows", without_gil(&pack_rows<W>), nb::arg("starts"), nb::arg("columns"), nb::arg("values"),
               nb::arg("ranks").none(), nb::arg("packed_starts"), nb::arg("packed"), nb::arg("steps"), R"(
        Write the positive entries of rows as column << 8 | level; return their number.

        values         in rows that begin at `starts`
        ranks          new number of each column; entries from 2^24 on are left out
        packed_starts  starts of the packed rows
        packed         as long as `values`
        steps          (rows,) 1/255 of the largest value of a row; a level is 1 to 255 of them
    )");
}

void add_cosines(Array2<const i8> rows, Array1<const i32> documents, Array1<const f32> scales, Array1<const i8> query,
                 f32 scale, Array1<f32> cosines) {
    require(length(rows) == length(documents) && length(rows) == length(scales),
            "rows, documents and scales: their lengths differ");
    require(i64(rows.shape(1)) == length(query), "rows and query: their dimensions differ");
    require_between(documents, 0, length(cosines), "documents");
    const std::vector<i16> factors(query.data(), query.data() + length(query));
    KLSA_DISPATCH(add_cosines(rows.data(), documents.data(), scales.data(), length(rows), factors.data(), length(query),
                              scale, cosines.data()));
}

}  // namespace

void bind_matrices(nb::module_& module) {
    nb::class_<Features> features(module, "Features", R"(
        The entries of a sparse matrix Φ in rows (documents): column and weight of each.

        columns  (nnz,) in [0, width)
        weights  (nnz,)
        width    number of columns (features)

        Methods take the first entry and the one after the last of each document, (N,) each. Sums are
        in the order of documents, then of entries.
    )");
    features
        .def(nb::init<Array1<const i32>, Array1<const f32>, i64>(), nb::arg("columns"), nb::arg("weights"),
             nb::arg("width"))
        .def(nb::init<Array1<const i32>, Array1<const f64>, i64>(), nb::arg("columns"), nb::arg("weights"),
             nb::arg("width"))
        .def("find_edge", without_gil(&Features::find_edge), nb::arg("begins"), nb::arg("ends"), nb::arg("edge"),
             nb::arg("out"), R"(
            Write to `out` (N,) the first entry of each document from column `edge` on.

            The columns of a document must ascend. Cost O(N log n).
        )");
    auto bind = [&]<class X>(X) {
        features
            .def("add_to_features", without_gil(&Features::add_to_features<X>), nb::arg("begins"), nb::arg("ends"),
                 nb::arg("blocks"), nb::arg("sums"), "Add Φᵀ `blocks` to `sums`: (N, b) → (width, b). Cost O(nnz · b).")
            .def("add_to_documents", without_gil(&Features::add_to_documents<X>), nb::arg("begins"), nb::arg("ends"),
                 nb::arg("sums"), nb::arg("out"), "Add Φ `sums` to `out`: (width, b) → (N, b). Cost O(nnz · b).");
    };
    bind(f32());
    bind(f64());
    bind_sums<f32>(module);
    bind_sums<f64>(module);
    bind_pack_rows<f32>(module);
    bind_pack_rows<f64>(module);
    module.def("pack_table", without_gil(&pack_table), nb::arg("starts"), nb::arg("columns"), nb::arg("values"),
               nb::arg("first"), nb::arg("ordinals"), nb::arg("table"), nb::arg("steps"), nb::arg("documents"),
               nb::arg("levels"),
               R"(
        Write the largest positive entries of each row off the diagonal, which begins at column `first`.

        ordinals           of all columns, by which ties are ordered
        table              (rows, width) as of `pack_rows`, largest first, padded with 0: entries whose
                           columns are rows, numbered from 0
        documents, levels  (rows, width) ordinals and levels of the others; (rows, 0) if there are none
        Cost O(entries log width).
    )");
    module.def("add_cosines", without_gil(&add_cosines), nb::arg("rows"), nb::arg("documents"), nb::arg("scales"),
               nb::arg("query"), nb::arg("scale"), nb::arg("cosines"), R"(
        Raise the cosine of each document to the largest of its vectors with a query: (N,).

        rows       (R, m) vectors; `documents` and `scales` (R,) have the document and 1 / length
        query      (m,) and its 1 / length, `scale`
        Cost O(m) for a vector: 7 ns with 384 values and AVX-512, 18 ns without vector code.
    )");
}

}  // namespace klsa
