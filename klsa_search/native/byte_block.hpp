// 64 bytes that are tested at once.
#pragma once

#include <cstring>
#include <span>

#include "integers.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace klsa {

// The first 64 bytes of a text, followed by zeros if it has fewer; masks have the bits of those that
// fit.
class ByteBlock {
  public:
    static constexpr size_t SIZE = 64;

    explicit ByteBlock(std::span<const u8> text) {
        if (text.size() >= SIZE) {
            std::memcpy(bytes_, text.data(), SIZE);
        } else {
            std::memset(bytes_, 0, SIZE);
            std::memcpy(bytes_, text.data(), text.size());
        }
    }

    u64 equal_to(u8 byte) const { return within(byte, byte); }
    u64 below(u8 limit) const { return within(0, u8(limit - 1)); }
    u64 from(u8 least) const { return within(least, 255); }
    u64 letters() const { return within('a', 'z', 0x20) | within('0', '9'); }

    void copy_to(u8* out) const { std::memcpy(out, bytes_, SIZE); }

  private:
    // Those from `least` to `most` once some bits are set in all of them.
    u64 within(u8 least, u8 most, u8 set = 0) const {
        u64 mask = 0;
#if defined(__SSE2__)
        const __m128i first = _mm_set1_epi8(char(least)), span = _mm_set1_epi8(char(most - least));
        for (size_t i = 0; i < SIZE; i += 16) {
            __m128i bytes = _mm_load_si128((const __m128i*)(bytes_ + i));
            if (set) bytes = _mm_or_si128(bytes, _mm_set1_epi8(char(set)));
            __m128i within;
            if (least == most) {
                within = _mm_cmpeq_epi8(bytes, first);
            } else if (least == 128 && most == 255) {
                within = bytes;
            } else {
                const __m128i above = _mm_sub_epi8(bytes, first);
                within = _mm_cmpeq_epi8(_mm_min_epu8(above, span), above);
            }
            mask |= u64(u32(_mm_movemask_epi8(within))) << i;
        }
#else
        for (size_t i = 0; i < SIZE; i++) mask |= u64(u8((bytes_[i] | set) - least) <= u8(most - least)) << i;
#endif
        return mask;
    }

    alignas(16) u8 bytes_[SIZE];
};

}  // namespace klsa
