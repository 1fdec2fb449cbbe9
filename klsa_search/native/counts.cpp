// Counts of terms and of pairs of terms.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

constexpr i64 MOST = std::numeric_limits<i32>::max();  // a larger count is this

struct Occurrence {
    i64 value, weight;
    bool operator<(const Occurrence& other) const { return value < other.value; }
};

// Append the distinct values of a document in order, with the sums of their weights; return how many.
template <class T>
i32 append_counts(std::vector<Occurrence>& found, std::vector<T>& values, std::vector<i32>& counts) {
    std::sort(found.begin(), found.end());
    const size_t first = values.size();
    for (const auto& [value, weight] : found) {
        if (values.size() > first && values.back() == T(value)) {
            counts.back() = i32(std::min(counts.back() + weight, MOST));
        } else {
            values.push_back(T(value));
            counts.push_back(i32(weight));
        }
    }
    return i32(values.size() - first);
}

auto count_block(Array1<const i32> words, Array1<const i32> lengths, Array1<const i32> parts, Array1<const bool> paired,
                 Array1<const i64> weights) {
    const i64 V = length(paired), documents = length(parts);
    require_between(weights, 0, MOST, "weights");
    std::vector<i32> sizes, columns, counts, key_sizes, key_counts;
    std::vector<i64> keys;
    i64 word = 0, part = 0;
    std::vector<Occurrence> terms, pairs;
    for (i64 document = 0; document < documents; document++) {
        terms.clear();
        pairs.clear();
        require(parts(document) >= 0 && part + parts(document) <= length(lengths), "parts: there are fewer lengths");
        for (i64 number = 0; number < parts(document); number++, part++) {
            require(lengths(part) >= 0 && word + lengths(part) <= length(words), "lengths: there are fewer words");
            // A part that is not searched has weight 0, and no words.
            const i64 weight = parts(document) == length(weights) ? std::max<i64>(weights(number), 1) : 1;
            i64 before = -1;
            for (const i64 end = word + lengths(part); word < end; word++) {
                const i64 term = words(word);
                if (term < 0) continue;
                require(term < V, "words: a term has no place in `paired`");
                terms.push_back({term, weight});
                if (!paired(term)) continue;
                // No pair crosses parts, and none has the same term twice.
                if (before >= 0 && before != term)
                    pairs.push_back({std::min(before, term) * V + std::max(before, term), weight});
                before = term;
            }
        }
        sizes.push_back(append_counts(terms, columns, counts));
        key_sizes.push_back(append_counts(pairs, keys, key_counts));
    }
    return std::tuple(std::move(sizes), std::move(columns), std::move(counts), std::move(key_sizes), std::move(keys),
                      std::move(key_counts));
}

auto number_pairs(Array1<const i64> shared, Array1<const i64> starts, Array1<const i32> sizes, Array1<const i64> keys,
                  Array1<const i32> counts) {
    const i64 V = length(starts) - 1;
    require(V >= 0, "starts: it is empty");
    require_offsets(starts, length(shared), "starts");
    require(length(keys) == length(counts), "keys and counts: their lengths differ");
    std::vector<i32> kept, numbers, kept_counts;
    i64 at = 0;
    for (i64 document = 0; document < length(sizes); document++) {
        require(sizes(document) >= 0 && at + sizes(document) <= length(keys), "sizes: there are fewer keys");
        const size_t before = numbers.size();
        for (const i64 end = at + sizes(document); at < end; at++) {
            require(keys(at) >= 0 && keys(at) < V * V, "keys: a pair has an unknown term");
            const i64 lesser = keys(at) / V;
            const i64* end_of_term = shared.data() + starts(lesser + 1);
            const i64* pair = std::lower_bound(shared.data() + starts(lesser), end_of_term, keys(at));
            if (pair == end_of_term || *pair != keys(at)) continue;
            numbers.push_back(i32(pair - shared.data()));
            kept_counts.push_back(counts(at));
        }
        kept.push_back(i32(numbers.size() - before));
    }
    return std::tuple(std::move(kept), std::move(numbers), std::move(kept_counts));
}

}  // namespace

void bind_counts(nb::module_& module) {
    module.def("count_block", without_gil(&count_block), exact("words"), exact("lengths"), exact("parts"),
               exact("paired"), exact("weights"), R"(
        Count terms and pairs of the documents of a block; `kernels.counts` has the arguments.

        Return the fields of `BlockCounts`. Cost: O(T log t) for T words in documents of t words.
    )");
    module.def("number_pairs", without_gil(&number_pairs), exact("shared"), exact("starts"), exact("sizes"),
               exact("keys"), exact("counts"), R"(
        Return the shared pairs of some documents as sizes, numbers and counts.

        shared        (P,) keys in order
        starts        (V + 1,) start of the pairs of each lesser term
        sizes         (n,) number of pairs of each document in keys and counts
        Cost: O(log P) a pair.
    )");
}

}  // namespace klsa
