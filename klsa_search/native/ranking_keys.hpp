// Keys of documents by score: the descending order of distinct keys is the ranking.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>

#include "integers.hpp"

namespace klsa {

// A key is score << 32 | LOW - doc id: of equal scores, the first document has the larger key.
constexpr i64 LOW = 0xFFFFFFFF;

inline i64 key_of(i64 score, i64 document) {
    return score << 32 | (LOW - document);
}
// A key by the bits of a number of 0 or more, which have its order.
inline i64 float_key(f32 value, i64 document) {
    return key_of(std::bit_cast<i32>(value), document);
}
inline i64 document_of(i64 key) {
    return LOW - (key & LOW);
}
inline f32 value_of(i64 float_key) {
    return std::bit_cast<f32>(i32(float_key >> 32));
}

// Move the k largest of the keys to the front and return the smallest of them; k <= count.
inline i64 select_largest(i64* keys, i64 count, i64 k) {
    std::nth_element(keys, keys + k - 1, keys + count, std::greater<>());
    return keys[k - 1];
}

}  // namespace klsa
