// Bindings of pair_codes.hpp.
#include "pair_codes.hpp"

#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

Owned<u8> encode(Array1<const i64> keys, Array1<const i64> frequencies, i64 terms) {
    require(length(keys) == length(frequencies), "keys and frequencies: their lengths differ");
    require(0 <= terms && terms <= std::numeric_limits<i32>::max(), "terms: they have more than 31 bits");
    require_between(keys.data(), length(keys), 0, terms * terms, "keys");
    require_between(frequencies.data(), length(frequencies), MIN_FREQUENCY, std::numeric_limits<i32>::max(),
                    "frequencies");
    bool ascend = true;
    for (i64 i = 1; i < length(keys); i++) ascend &= keys(i - 1) < keys(i);
    require(ascend, "keys: they do not ascend");
    std::vector<u8> codes;
    {
        WithoutGil released;
        codes = encode_pairs({keys.data(), keys.shape(0)}, {frequencies.data(), frequencies.shape(0)}, terms);
    }
    return owned(std::move(codes));
}

auto decode(Array1<const u8> codes, i64 terms) {
    DecodedPairs pairs;
    {
        WithoutGil released;
        pairs = decode_pairs({codes.data(), codes.shape(0)}, terms);
    }
    return std::tuple(owned(std::move(pairs.starts)), owned(std::move(pairs.greater)),
                      owned(std::move(pairs.frequencies)));
}

void number(Array1<i32> features, Array1<i64> next_numbers) {
    require_between(features.data(), length(features), 0, length(next_numbers), "features");
    require_between(next_numbers.data(), length(next_numbers), 0, i64(1) << 31, "next_numbers");
    number_features({features.data(), features.shape(0)}, {next_numbers.data(), next_numbers.shape(0)});
}

Owned<i32> find(Array1<const i64> keys, i64 terms, Array1<const i64> starts, Array1<const i32> greater,
                Array1<const i32> numbers) {
    const i64 pairs = length(greater), features = length(starts) - 1;
    require(length(numbers) == pairs, "numbers: their number is not that of the pairs");
    require(terms > 0 || length(keys) == 0, "terms: there are none");
    require_offsets(starts.data(), length(starts), pairs, "starts");
    std::vector<i32> out(length(keys), -1);
    {
        WithoutGil released;
        for (i64 i = 0; i < length(keys); i++) {
            const i64 lesser = keys(i) / terms, other = keys(i) % terms;
            if (lesser < 0 || lesser >= features || other >= features) continue;
            const i32* end = greater.data() + starts(lesser + 1);
            const i32* place = std::lower_bound(greater.data() + starts(lesser), end, other);
            if (place < end && *place == other) out[i] = numbers(place - greater.data());
        }
    }
    return owned(std::move(out));
}

}  // namespace

void bind_pair_codes(nb::module_& module) {
    module.def("encode_pairs", &encode, exact("keys"), exact("frequencies"), nb::arg("terms"));
    module.def("decode_pairs", &decode, exact("codes"), nb::arg("terms"));
    module.def("number_features", without_gil(&number), exact("features"), exact("next_numbers"));
    module.def("find_pairs", &find, exact("keys"), nb::arg("terms"), exact("starts"), exact("greater"),
               exact("numbers"));
}

}  // namespace klsa
