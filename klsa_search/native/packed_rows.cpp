// Entries of rows packed in 32 bits: 24 of the column, 8 of the level; see lowrank/sparse_expansion.py.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

constexpr i64 COLUMNS = i64(1) << 24;
constexpr f32 LEVELS = 255;

using Starts = Array1<const i64>;
using Columns = Array1<const i32>;

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

// Call `visit(row, i, entry, level)` for the `width` largest positive entries of each row off the diagonal, which
// begins at column `first`, i from 0 for the largest; write the steps.
template <class Visit>
void for_each_strongest(const Starts& starts, const Columns& columns, const Array1<const f32>& values, i64 first,
                        const i64* orders, i64 width, Array1<f32>& steps, Visit visit) {
    std::vector<Entry> entries;
    for (i64 row = 0; row < length(steps); row++) {
        entries.clear();
        for (i64 p = starts(row); p < starts(row + 1); p++) {
            const i32 column = columns(p);
            if (column != first + row && values(p) > 0)
                entries.push_back({values(p), orders ? orders[column] : column, column});
        }
        const size_t kept = std::min(entries.size(), size_t(width));
        std::partial_sort(
            entries.begin(), entries.begin() + i64(kept), entries.end(),
            [](const Entry& a, const Entry& b) { return a.value != b.value ? a.value > b.value : a.order < b.order; });
        const f32 step = steps(row) = kept ? entries[0].value / LEVELS : 0;
        for (size_t i = 0; i < kept; i++) visit(row, i, entries[i], level_of(entries[i].value, step));
    }
}

void require_rows(const Starts& starts, const Columns& columns, const Array1<const f32>& values, i64 limit,
                  const Array2<u32>& table, const Array1<f32>& steps) {
    require(length(starts) == length(steps) + 1 && length(table) == length(steps),
            "starts, table and steps: their numbers of rows differ");
    require(length(columns) == length(values), "columns and values: their lengths differ");
    require_offsets(starts, length(columns), "starts");
    require_between(columns, 0, limit, "columns");
}

void pack_table(Starts starts, Columns columns, Array1<const f32> values, Array2<u32> table, Array1<f32> steps) {
    require_rows(starts, columns, values, COLUMNS, table, steps);
    std::fill_n(table.data(), table.size(), 0);
    for_each_strongest(
        starts, columns, values, 0, nullptr, i64(table.shape(1)), steps,
        [&](i64 row, size_t i, const Entry& entry, u32 level) { table(row, i) = u32(entry.column) << 8 | level; });
}

void pack_partition_table(Starts starts, Columns columns, Array1<const f32> values, i64 first,
                          Array1<const i64> ordinals, Array2<u32> table, Array1<f32> steps, Array2<u32> documents,
                          Array2<u8> levels) {
    require_rows(starts, columns, values, length(ordinals), table, steps);
    require_between(ordinals, 0, i64(1) << 32, "ordinals");
    const i64 rows = length(steps), width = i64(table.shape(1));
    require(first >= 0 && first <= length(ordinals) && rows <= COLUMNS, "first: there is no such column");
    require(length(documents) == rows && length(levels) == rows && i64(documents.shape(1)) == width &&
                i64(levels.shape(1)) == width,
            "table, documents and levels: their shapes differ");
    std::fill_n(table.data(), table.size(), 0);
    std::fill_n(documents.data(), documents.size(), 0);
    std::fill_n(levels.data(), levels.size(), 0);
    i64 here = 0, remote = 0;
    for_each_strongest(starts, columns, values, first, ordinals.data(), width, steps,
                       [&](i64 row, size_t i, const Entry& entry, u32 level) {
                           if (i == 0) here = remote = 0;
                           const i64 column = entry.column - first;
                           if (column >= 0 && column < rows) {
                               table(row, here++) = u32(column) << 8 | level;
                           } else {
                               documents(row, remote) = u32(entry.order);
                               levels(row, remote++) = u8(level);
                           }
                       });
}

template <class W>
void bind_pack_rows(nb::module_& module) {
    module.def("pack_rows", without_gil(&pack_rows<W>), exact("starts"), exact("columns"), exact("values"),
               exact("ranks").none(), exact("packed_starts"), exact("packed"), exact("steps"), R"(
        Write the positive entries of rows as column << 8 | level; return their number.

        values         in rows that begin at `starts`
        ranks          new number of each column; entries from 2^24 on are left out
        packed_starts  starts of the packed rows
        packed         as long as `values`
        steps          (rows,) 1/255 of the largest value of a row; a level is 1 to 255 of them
    )");
}

}  // namespace

void bind_packed_rows(nb::module_& module) {
    bind_pack_rows<f32>(module);
    bind_pack_rows<f64>(module);
    module.def("pack_table", without_gil(&pack_table), exact("starts"), exact("columns"), exact("values"),
               exact("table"), exact("steps"), R"(
        Write the largest positive entries of each row off the diagonal, as of `pack_rows`.

        table  (rows, width), largest first, padded with 0; ties are ordered by column
        Cost O(entries log width).
    )");
    module.def("pack_partition_table", without_gil(&pack_partition_table), exact("starts"), exact("columns"),
               exact("values"), nb::arg("first"), exact("ordinals"), exact("table"), exact("steps"), exact("documents"),
               exact("levels"), R"(
        Write what `pack_table` does for a partition, whose diagonal begins at column `first`.

        ordinals           of all columns, by which ties are ordered
        table              entries whose columns are rows of the partition, numbered from 0
        documents, levels  (rows, width) ordinals and levels of the others
    )");
}

}  // namespace klsa
