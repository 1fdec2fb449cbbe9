// Codes of the term pairs of a build, and numbers of its features; see delta/statistics.py.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "forward_codes.hpp"

namespace klsa {

constexpr i64 MIN_FREQUENCY = 2;  // minimal document frequency of a pair

// Return the codes of pairs, keys ascending, of `terms` terms.
inline std::vector<u8> encode_pairs(std::span<const i64> keys, std::span<const i64> frequencies, i64 terms) {
    std::vector<u8> codes(MAX_CODE_BYTES * (terms + 2 * keys.size()));
    i64 at = 0;
    size_t pair = 0;
    for (i64 lesser = 0; lesser < terms; lesser++) {
        i64 before = lesser * terms;
        size_t end = pair;
        while (end < keys.size() && keys[end] < before + terms) end++;
        at = write_code(codes.data(), at, i64(end - pair));
        for (; pair < end; pair++) {
            at = write_code(codes.data(), at, keys[pair] - before);
            at = write_code(codes.data(), at, frequencies[pair] - MIN_FREQUENCY);
            before = keys[pair];
        }
    }
    codes.resize(at);
    codes.shrink_to_fit();
    return codes;
}

// Pairs by their lesser term, with document frequencies.
struct DecodedPairs {
    std::vector<i64> starts;  // (V + 1,) of the pairs of each lesser term
    std::vector<i32> greater;
    std::vector<i32> frequencies;
};

inline DecodedPairs decode_pairs(std::span<const u8> codes, i64 terms) {
    DecodedPairs out;
    // Each code ends with a byte below 0x80: one for each term, and two for each pair.
    const i64 ends = std::count_if(codes.begin(), codes.end(), [](u8 code) { return code < 0x80; });
    if (terms < 0 || terms > ends) throw std::invalid_argument("codes: fewer terms than they are to have");
    const i64 pairs = (ends - terms) / 2;
    out.starts.assign(terms + 1, 0);
    out.greater.reserve(pairs);
    out.frequencies.reserve(pairs);
    CodeReader reader(codes);
    for (i64 lesser = 0; lesser < terms; lesser++) {
        const i64 size = reader.read();
        if (size > pairs - i64(out.greater.size())) throw std::invalid_argument("codes: more pairs than they hold");
        i64 greater = 0;
        for (i64 i = 0; i < size; i++) {
            greater += reader.read();
            out.greater.push_back(i32(greater));
            out.frequencies.push_back(i32(reader.read() + MIN_FREQUENCY));
        }
        out.starts[lesser + 1] = out.starts[lesser] + size;
    }
    return out;
}

// Replace the document frequency of each feature by the next number of that frequency.
inline void number_features(std::span<i32> features, std::span<i64> next_numbers) {
    for (i32& feature : features) feature = i32(next_numbers[feature]++);
}

}  // namespace klsa
