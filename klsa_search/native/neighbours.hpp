// What the search for nearest neighbours reads and needs, as pointers that were checked.
#pragma once

#include <span>
#include <vector>

#include "integers.hpp"
#include "ranking_keys.hpp"

namespace klsa {

constexpr i64 KNN_BLOCK = 1 << 15;          // documents whose sums are added at a time: they fit the L2 cache
constexpr i64 KNN_SPARSE_BLOCK = 1 << 17;   // the same if few documents have postings
constexpr i64 KNN_SPARSE = 64;              // documents per posting from which on few have postings
constexpr i64 KNN_LINE = 16;                // documents whose sums are a cache line
constexpr size_t KNN_AHEAD = 2;             // lists of postings whose begin is read ahead
constexpr i32 FILTER_MASK = (1 << 14) - 1;  // the filter fits the L1 cache

// Documents from doc id `first` on: their features, centring and truncated postings.
struct KnnDocuments {
    i64 first, documents;
    const i64* starts;
    const i32* columns;
    const f32* weights;
    const f32* scales;
    const f32* towards_mean;
    f32 mean_square;
    const i64* posting_starts;
    const i32* posting_documents;
    const f32* posting_values;
};

struct KnnLimits {
    i64 features, postings;
};

// Buffers of one thread; `sums`, `dense` and `filter` are all 0 between documents.
struct KnnBuffers {
    std::vector<f32> sums, dense, largest;
    f32 least = 0;  // sum that a candidate must reach

    std::vector<u8> filter = std::vector<u8>(FILTER_MASK + 1 + 3);  // gathers read 3 bytes more
    std::vector<i64> order, keys, entries, places;
    std::vector<i32> query, others, touched;
    std::vector<f32> query_weights;
};

}  // namespace klsa
