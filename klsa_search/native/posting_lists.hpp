// Postings of consecutive documents, and views of arrays.
#pragma once

#include "arrays.hpp"
#include "engine/containing.hpp"

namespace klsa {

template <class T>
using In1 = Array1<const T>;
template <class T>
using In2 = Array2<const T>;

template <class T>
Array<T> view(const In1<T>& array) {
    return {array.data(), length(array)};
}
template <class T>
Table<T> view(const In2<T>& array) {
    return {array.data(), length(array), i64(array.shape(1))};
}

// `PostingLists` of the module.
struct ListsObject {
    Owners owners;
    PostingLists lists;

    ListsObject(i64 size, int block_bits, In1<i64> starts, In1<u32> entries, In1<i64> run_starts, In2<u16> runs) {
        lists.size = size;
        lists.block_bits = block_bits;
        lists.starts = view(owners.keep(starts));
        lists.entries = view(owners.keep(entries));
        lists.run_starts = view(owners.keep(run_starts));
        lists.runs = view(owners.keep(runs));
        lists.check();
    }

    void add_steps(In1<i64> terms, In1<i64> weights, Array1<i64> steps) const {
        require(length(terms) == length(weights), "terms and weights: their lengths differ");
        require_between(terms, 0, lists.terms(), "terms");
        require_between(weights, 0, i64(1) << 40, "weights");
        require_between(steps, 0, i64(1) << 62, "steps");
        for (i64 i = 0; i < length(terms); i++) {
            for_each_run(lists, terms(i), [&](i64 first, std::span<const u32> entries) {
                for (const u32 entry : entries) {
                    const i64 document = first + (entry >> 16);
                    require(document < length(steps), "entries: a document is unknown");
                    steps(document) += 1 + ((weights(i) * i64(entry & 0xFFFF)) >> 16);
                }
            });
        }
    }
};

}  // namespace klsa
