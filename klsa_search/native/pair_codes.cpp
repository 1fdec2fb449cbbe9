// Bindings of pair_codes.hpp.
#include "pair_codes.hpp"

#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

auto encode(Array1<const i64> keys, Array1<const i64> frequencies, i64 terms) {
    require(length(keys) == length(frequencies), "keys and frequencies: their lengths differ");
    require(0 <= terms && terms <= std::numeric_limits<i32>::max(), "terms: they have more than 31 bits");
    require_between(keys, 0, terms * terms, "keys");
    require_between(frequencies, MIN_FREQUENCY, std::numeric_limits<i32>::max(), "frequencies");
    bool ascend = true;
    for (i64 i = 1; i < length(keys); i++) ascend &= keys(i - 1) < keys(i);
    require(ascend, "keys: they do not ascend");
    return encode_pairs(span_of(keys), span_of(frequencies), terms);
}

auto decode(Array1<const u8> codes, i64 terms) {
    DecodedPairs pairs = decode_pairs(span_of(codes), terms);
    return std::tuple(std::move(pairs.starts), std::move(pairs.greater), std::move(pairs.frequencies));
}

void number(Array1<i32> features, Array1<i64> next_numbers) {
    require_between(features, 0, length(next_numbers), "features");
    require_between(next_numbers, 0, i64(1) << 31, "next_numbers");
    number_features(span_of(features), span_of(next_numbers));
}

auto find(Array1<const i64> keys, i64 terms, Array1<const i64> starts, Array1<const i32> greater,
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

}  // namespace

void bind_pair_codes(nb::module_& module) {
    module.def("encode_pairs", without_gil(&encode), exact("keys"), exact("frequencies"), nb::arg("terms"), R"(
        Return the codes of term pairs.

        keys         lesser · terms + greater, ascending
        frequencies  document frequencies, 2 or more
        Cost: O(terms + pairs). Memory: 10 bytes a pair.
    )");
    module.def("decode_pairs", without_gil(&decode), exact("codes"), nb::arg("terms"),
               "Return starts (terms + 1,) of the pairs of each lesser term, greater terms, frequencies.");
    module.def("number_features", without_gil(&number), exact("features"), exact("next_numbers"),
               "Replace the document frequency of each feature by the next number of that frequency.");
    module.def("find_pairs", without_gil(&find), exact("keys"), nb::arg("terms"), exact("starts"), exact("greater"),
               exact("numbers"), "Return the numbers of pair keys, -1 for unknown ones: (n,). Cost: O(n log P).");
}

}  // namespace klsa
