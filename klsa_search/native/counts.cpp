// Counts of terms and of pairs of terms, and what an index keeps of them: postings and codes of pairs.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "forward_codes.hpp"
#include "posting_lists.hpp"

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

constexpr i64 MIN_FREQUENCY = 2;  // minimal document frequency of a pair

auto encode_pairs(Array1<const i64> keys, Array1<const i64> frequencies, i64 terms) {
    require(length(keys) == length(frequencies), "keys and frequencies: their lengths differ");
    require(0 <= terms && terms <= MOST, "terms: they have more than 31 bits");
    require_between(keys, 0, terms * terms, "keys");
    require_between(frequencies, MIN_FREQUENCY, MOST, "frequencies");
    bool ascend = true;
    for (i64 i = 1; i < length(keys); i++) ascend &= keys(i - 1) < keys(i);
    require(ascend, "keys: they do not ascend");
    std::vector<u8> codes(MAX_CODE_BYTES * (terms + 2 * length(keys)));
    i64 at = 0, pair = 0;
    for (i64 lesser = 0; lesser < terms; lesser++) {
        i64 before = lesser * terms, end = pair;
        while (end < length(keys) && keys(end) < before + terms) end++;
        at = write_code(codes.data(), at, end - pair);
        for (; pair < end; pair++) {
            at = write_code(codes.data(), at, keys(pair) - before);
            at = write_code(codes.data(), at, frequencies(pair) - MIN_FREQUENCY);
            before = keys(pair);
        }
    }
    codes.resize(at);
    codes.shrink_to_fit();
    return codes;
}

auto decode_pairs(Array1<const u8> codes, i64 terms) {
    // Each code ends with a byte below 0x80: one for each term, and two for each pair.
    const std::span bytes = span_of(codes);
    const i64 ends = std::count_if(bytes.begin(), bytes.end(), [](u8 code) { return code < 0x80; });
    require(terms >= 0 && terms <= ends, "codes: fewer terms than they are to have");
    const i64 pairs = (ends - terms) / 2;
    std::vector<i64> starts(terms + 1, 0);
    std::vector<i32> greater, frequencies;
    greater.reserve(pairs);
    frequencies.reserve(pairs);
    CodeReader reader(bytes);
    for (i64 lesser = 0; lesser < terms; lesser++) {
        const i64 size = reader.read();
        require(size <= pairs - i64(greater.size()), "codes: more pairs than they hold");
        i64 other = 0;
        for (i64 i = 0; i < size; i++) {
            greater.push_back(i32(other += reader.read()));
            frequencies.push_back(i32(reader.read() + MIN_FREQUENCY));
        }
        starts[lesser + 1] = starts[lesser] + size;
    }
    return std::tuple(std::move(starts), std::move(greater), std::move(frequencies));
}

void number_features(Array1<i32> features, Array1<i64> next_numbers) {
    require_between(features, 0, length(next_numbers), "features");
    require_between(next_numbers, 0, i64(1) << 31, "next_numbers");
    for (i64 i = 0; i < length(features); i++) features(i) = i32(next_numbers(features(i))++);
}

auto find_pairs(Array1<const i64> keys, i64 terms, Array1<const i64> starts, Array1<const i32> greater,
                Array1<const i32> numbers) {
    const i64 pairs = length(greater), features = length(starts) - 1;
    require(length(numbers) == pairs, "numbers: their number is not that of the pairs");
    require(terms > 0 || length(keys) == 0, "terms: there are none");
    require_offsets(starts, pairs, "starts");
    std::vector<i32> out(length(keys), -1);
    for (i64 i = 0; i < length(keys); i++) {
        const i64 lesser = keys(i) / terms, other = keys(i) % terms;
        if (lesser < 0 || lesser >= features || other >= features) continue;
        const i32* end = greater.data() + starts(lesser + 1);
        const i32* place = std::lower_bound(greater.data() + starts(lesser), end, other);
        if (place < end && *place == other) out[i] = numbers(place - greater.data());
    }
    return out;
}

constexpr i64 UNIT = 1 << 16;

void require_bits(i64 bits) {
    require(bits >= 0 && bits <= 16, "bits: a block has at most 2^16 documents");
}

template <class C>
void require_counts(const Array1<const i64>& starts, const Array1<const i32>& terms, const Array1<const C>& counts,
                    i64 V) {
    require(length(starts) > 0, "starts: it is empty");
    require(length(terms) == length(counts), "terms and counts: their lengths differ");
    require_offsets(starts, length(terms), "starts");
    require_between(terms, 0, V, "terms");
}

// Call `visit(document, entry, term, is_first)` for each entry, whether it is the first of its term in a block or not.
template <class Visit>
void for_each_entry(const Array1<const i64>& starts, const Array1<const i32>& terms, i64 bits, i64 V, Visit visit) {
    std::vector<i64> last(size_t(V), -1);
    for (i64 document = 0; document + 1 < length(starts); document++) {
        const i64 block = document >> bits;
        for (i64 p = starts(document); p < starts(document + 1); p++) {
            i64& before = last[size_t(terms(p))];
            visit(document, p, i64(terms(p)), before != block);
            before = block;
        }
    }
}

template <class C>
void count_postings(Array1<const i64> starts, Array1<const i32> terms, Array1<const C> counts, i64 bits,
                    Array1<i64> lengths, Array1<i64> runs, Array1<i64> occurrences) {
    const i64 V = length(lengths);
    require_bits(bits);
    require(length(runs) == V && length(occurrences) == V, "lengths, runs and occurrences: their lengths differ");
    require_counts(starts, terms, counts, V);
    for (const auto* totals : {&lengths, &runs, &occurrences})
        require_between(*totals, 0, i64(1) << 62, "lengths, runs and occurrences");
    for_each_entry(starts, terms, bits, V, [&](i64, i64 p, i64 term, bool is_first) {
        lengths(term)++;
        occurrences(term) += i64(counts(p));
        runs(term) += is_first;
    });
}

template <class C>
void write_postings(Array1<const i64> starts, Array1<const i32> terms, Array1<const C> counts, Array1<const f64> norms,
                    i64 bits, Array1<i64> places, Array1<i64> run_places, Array1<u32> entries, Array2<u16> runs) {
    require_bits(bits);
    const i64 V = length(places), mask = (i64(1) << bits) - 1;
    require(length(run_places) == V, "places and run_places: their lengths differ");
    require(length(norms) == length(starts) - 1, "norms: their number is not that of the documents");
    require(runs.shape(1) == 3, "runs: they do not have three columns");
    require_counts(starts, terms, counts, V);
    require_between(places, 0, length(entries) + 1, "places");
    require_between(run_places, 0, length(runs) + 1, "run_places");
    for_each_entry(starts, terms, bits, V, [&](i64 document, i64 p, i64 term, bool is_first) {
        const f64 count = f64(counts(p));
        const f64 share = std::nearbyint(count / (norms(document) + count) * f64(UNIT));
        const u32 saturation = u32(std::min(std::max(share, 1.0), f64(UNIT - 1)));
        const i64 place = places(term)++;
        require(place < length(entries), "places: there are fewer entries");
        entries(place) = u32(document & mask) << 16 | saturation;
        if (is_first) {
            const i64 run = run_places(term)++;
            require(run < length(runs), "run_places: there are fewer runs");
            runs(run, 0) = u16(document >> bits);
        } else {
            runs(run_places(term) - 1, 1)++;
        }
        u16& strongest = runs(run_places(term) - 1, 2);
        strongest = std::max(strongest, u16(saturation));
    });
}

void find_best_saturations(Array1<const i64> starts, Array1<const u32> entries, Array1<const i64> depths,
                           Array2<u16> best) {
    require(length(starts) == length(best) + 1, "best: its number of rows is not that of the terms");
    require(i64(best.shape(1)) == length(depths), "best and depths: their widths differ");
    require_offsets(starts, length(entries), "starts");
    for (i64 i = 0; i < length(depths); i++)
        require(depths(i) > 0 && (i == 0 || depths(i) > depths(i - 1)), "depths: they do not ascend from 1");
    std::vector<u16> shares;
    for (i64 term = 0; term < length(best); term++) {
        shares.clear();
        for (i64 p = starts(term); p < starts(term + 1); p++) shares.push_back(u16(entries(p)));
        auto end = shares.end();
        for (i64 i = length(depths) - 1; i >= 0; i--) {
            if (depths(i) > end - shares.begin()) continue;
            const auto nth = shares.begin() + (depths(i) - 1);
            std::nth_element(shares.begin(), nth, end, std::greater<>());
            best(term, i) = *nth;
            end = nth + 1;
        }
    }
}

template <class C>
void bind_writing(nb::module_& module) {
    module.def("count_postings", without_gil(&count_postings<C>), nb::arg("starts"), nb::arg("terms"),
               nb::arg("counts"), nb::arg("bits"), nb::arg("lengths"), nb::arg("runs"), nb::arg("occurrences"), R"(
        Add the postings, runs and occurrences of each term to (V,) arrays.

        starts, terms, counts  f(t,d) as in CSR; counts are int32, int64, float32 or float64
        bits                   a block has 2^bits documents
        Cost O(nnz).
    )");
    module.def("write_postings", without_gil(&write_postings<C>), nb::arg("starts"), nb::arg("terms"),
               nb::arg("counts"), nb::arg("norms"), nb::arg("bits"), nb::arg("places"), nb::arg("run_places"),
               nb::arg("entries"), nb::arg("runs"),
               R"(
        Write the entries and runs of documents, and advance the places of each term.

        norms               K_d of each document
        places, run_places  (V,) where the next entry and run of each term are written
        `runs` must be 0. See `count_postings` for the other arguments. Cost O(nnz).
    )");
}

}  // namespace

void bind_counts(nb::module_& module) {
    module.def("count_block", without_gil(&count_block), nb::arg("words"), nb::arg("lengths"), nb::arg("parts"),
               nb::arg("paired"), nb::arg("weights"), R"(
        Count terms and pairs of the documents of a block; `kernels.counts` has the arguments.

        Return the fields of `BlockCounts`. Cost: O(T log t) for T words in documents of t words.
    )");
    module.def("number_pairs", without_gil(&number_pairs), nb::arg("shared"), nb::arg("starts"), nb::arg("sizes"),
               nb::arg("keys"), nb::arg("counts"), R"(
        Return the shared pairs of some documents as sizes, numbers and counts.

        shared        (P,) keys in order
        starts        (V + 1,) start of the pairs of each lesser term
        sizes         (n,) number of pairs of each document in keys and counts
        Cost: O(log P) a pair.
    )");
    module.def("encode_pairs", without_gil(&encode_pairs), nb::arg("keys"), nb::arg("frequencies"), nb::arg("terms"),
               R"(
        Return the codes of term pairs.

        keys         lesser · terms + greater, ascending
        frequencies  document frequencies, 2 or more
        Cost: O(terms + pairs). Memory: 10 bytes a pair.
    )");
    module.def("decode_pairs", without_gil(&decode_pairs), nb::arg("codes"), nb::arg("terms"),
               "Return starts (terms + 1,) of the pairs of each lesser term, greater terms, frequencies.");
    module.def("number_features", without_gil(&number_features), nb::arg("features"), nb::arg("next_numbers"),
               "Replace the document frequency of each feature by the next number of that frequency.");
    module.def("find_pairs", without_gil(&find_pairs), nb::arg("keys"), nb::arg("terms"), nb::arg("starts"),
               nb::arg("greater"), nb::arg("numbers"),
               "Return the numbers of pair keys, -1 for unknown ones: (n,). Cost: O(n log P).");
    bind_writing<i32>(module);
    bind_writing<i64>(module);
    bind_writing<f32>(module);
    bind_writing<f64>(module);
    module.def("find_best_saturations", without_gil(&find_best_saturations), nb::arg("starts"), nb::arg("entries"),
               nb::arg("depths"), nb::arg("best"), R"(
        Write the n-th best saturation of each term for every n of `depths`, where there are n.

        depths  (m,) ascending, at least 1
        best    (V, m)
        Cost O(nnz).
    )");
    nb::class_<ListsObject>(module, "PostingLists", R"(
        The postings of consecutive documents, as `kernels.postings.Postings` describes them.

        size        number of documents
        block_bits  a block has 2^block_bits doc ids
        Cost O(V): offsets are checked, single postings are not.
    )")
        .def(nb::init<i64, int, In1<i64>, In1<u32>, In1<i64>, In2<u16>>(), nb::arg("size"), nb::arg("block_bits"),
             nb::arg("starts"), nb::arg("entries"), nb::arg("run_starts"), nb::arg("runs"))
        .def("add_steps", without_gil(&ListsObject::add_steps), nb::arg("terms"), nb::arg("weights"), nb::arg("steps"),
             R"(
            Add 1 + ⌊weight · saturation / 2^16⌋ of some terms to the documents that contain them: (N,).

            Cost: the postings of the terms.
        )");
}

}  // namespace klsa
