// Sums over the entries of sparse matrices in rows, in float64 and in the order of the entries.
#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

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

template <class W>
void add_to_columns(Columns columns, Array1<const W> data, Array1<f64> sums) {
    require(length(columns) == length(data), "columns and data: their lengths differ");
    require_between(columns, 0, length(sums), "columns");
    for (i64 p = 0; p < length(data); p++) sums(columns(p)) += f64(data(p));
}

template <class W>
void rows_with(Starts starts, Columns columns, Array1<const W> data, Array1<const f64> vector, Array1<f64> sums) {
    require(length(starts) == length(sums) + 1, "sums: its length is not the number of rows");
    require(length(columns) == length(data), "columns and data: their lengths differ");
    require_offsets(starts, length(data), "starts");
    require_between(columns, 0, length(vector), "columns");
    for (i64 row = 0; row < length(sums); row++) {
        f64 total = 0;
        for (i64 p = starts(row); p < starts(row + 1); p++) total += f64(data(p)) * vector(columns(p));
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
void bind(nb::module_& module) {
    module.def("squares_of_rows", without_gil(&squares_of_rows<W>), exact("starts"), exact("data"), exact("sums"),
               "Write Σ_f x² of each row to `sums`: (m,). Cost O(nnz).");
    module.def("add_to_columns", without_gil(&add_to_columns<W>), exact("columns"), exact("data"), exact("sums"),
               "Add the entries of each column to `sums`: (n,). Cost O(nnz).");
    module.def("rows_with", without_gil(&rows_with<W>), exact("starts"), exact("columns"), exact("data"),
               exact("vector"), exact("sums"),
               "Write the inner product of each row with a vector to `sums`: (n,) → (m,). Cost O(nnz).");
    auto bind_scale = [&]<class X>(X) {
        module.def("scale_rows", without_gil(&scale_rows<W, X>), exact("starts"), exact("data"), exact("scales"),
                   exact("scaled"), "Write each row times its scale to `scaled`: (nnz,). Cost O(nnz).");
    };
    bind_scale(f32());
    bind_scale(f64());
}

}  // namespace

void bind_sums(nb::module_& module) {
    bind<f32>(module);
    bind<f64>(module);
}

}  // namespace klsa
