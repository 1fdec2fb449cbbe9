// Entries of later documents in the rows of earlier ones, while there are more and more.
#include <algorithm>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

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

void bind_reverse_neighbours(nb::module_& module) {
    module.def("insert_neighbours", without_gil(&insert_neighbours), exact("row_of"), exact("pairs"), exact("values"),
               exact("neighbours"), exact("strongest"), R"(
        Insert entries in rows of the strongest, after entries of equal value; drop the weakest.

        row_of      (N,) row of each document, from 1
        pairs       (R, 2) the document that gets the entry, and its neighbour
        values      (R,) of the entries
        neighbours, strongest  (rows, width), changed here
    )");
}

}  // namespace klsa
