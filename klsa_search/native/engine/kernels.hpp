// The inner loops, with AVX-512, AVX2 or plain C++; all give the same bits.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`. KLSA_ISA is 2 for plain C++, 3 for AVX2
// and 4 for AVX-512. A vector loop handles whole vectors; the plain loop after it handles the rest,
// and is all there is without these instructions.
#include "../dot.hpp"

namespace klsa::KLSA_NS {

// acc[place] += 1 + floor(weight * saturation / 2^16), for every posting. The sums are not vectors:
// scatter takes longer.
inline void add_postings(i32* acc, const u32* entries, i64 count, u64 weight) {
    i64 i = 0;
#if KLSA_ISA >= 3
    const __m256i high = _mm256_set1_epi32(int(weight >> 16)), low = _mm256_set1_epi32(int(weight & 0xFFFF));
    const __m256i one = _mm256_set1_epi32(1), mask = _mm256_set1_epi32(0xFFFF);
    alignas(32) i32 impacts[8];
    for (; i + 8 <= count; i += 8) {
        prefetch(entries + i + 256);
        __m256i e = _mm256_loadu_si256((const __m256i*)(entries + i));
        __m256i v = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_and_si256(e, mask), high),
                                     _mm256_add_epi32(_mm256_mulhi_epu16(e, low), one));
        _mm256_store_si256((__m256i*)impacts, v);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) acc[entries[i + j] >> 16] += impacts[j];
    }
#endif
    for (; i < count; i++) {
        u32 e = entries[i];
        acc[e >> 16] += 1 + i32((weight * (e & 0xFFFF)) >> 16);
    }
}

// Which of 64 numbers exceed the limit, one bit each.
inline u64 mask_above(const i32* numbers, i32 limit) {
    u64 mask = 0;
#if KLSA_ISA >= 4
    const __m512i least = _mm512_set1_epi32(limit);
    for (int j = 0; j < 64; j += 16) mask |= u64(_mm512_cmpgt_epi32_mask(_mm512_loadu_si512(numbers + j), least)) << j;
#elif KLSA_ISA >= 3
    const __m256i least = _mm256_set1_epi32(limit);
    for (int j = 0; j < 64; j += 8) {
        __m256i above = _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i*)(numbers + j)), least);
        mask |= u64(u32(_mm256_movemask_ps(_mm256_castsi256_ps(above)))) << j;
    }
#else
    for (int j = 0; j < 64; j++) mask |= u64(numbers[j] > limit) << j;
#endif
    return mask;
}

// Maxima of groups of `per_group` scores, 16 apart; returns the number of groups.
inline i64 group_maxima(const i32* acc, i64 span, i64 per_group, i32* maxima) {
    i64 groups = 0;
    for (i64 begin = 0; begin < span; begin += 16 * per_group, groups += 16) {
        i64 end = begin + 16 * per_group < span ? begin + 16 * per_group : span;
        i32 best[16] = {};
        for (i64 i = begin; i < end; i += 16)
            for (int lane = 0; lane < 16; lane++) best[lane] = acc[i + lane] > best[lane] ? acc[i + lane] : best[lane];
        for (int lane = 0; lane < 16; lane++) maxima[groups + lane] = best[lane];
    }
    return groups;
}

// Copy the postings of documents whose bit is set; returns how many, and writes up to a vector more.
// The first document of the block has bit `lead`.
inline i64 scan_best(const u32* entries, i64 n, const u32* is_best, u32 lead, u32* hits) {
    i64 count = 0, i = 0;
#if KLSA_ISA >= 4
    const __m512i first = _mm512_set1_epi32(int(lead)), low5 = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
    for (; i + 16 <= n; i += 16) {
        __m512i e = _mm512_loadu_si512(entries + i), place = _mm512_add_epi32(_mm512_srli_epi32(e, 16), first);
        __m512i words = _mm512_i32gather_epi32(_mm512_srli_epi32(place, 5), is_best, 4);
        __mmask16 m = _mm512_test_epi32_mask(_mm512_srlv_epi32(words, _mm512_and_si512(place, low5)), one);
        _mm512_storeu_si512(hits + count, _mm512_maskz_compress_epi32(m, e));
        count += __builtin_popcount(m);
    }
#endif
#pragma GCC unroll 8
    for (; i < n; i++) {
        u32 e = entries[i], place = (e >> 16) + lead;
        hits[count] = e;
        count += is_best[place >> 5] >> (place & 31) & 1;
    }
    return count;
}

// Write the documents and levels of the first neighbours that are among the best.
inline i64 near_hits(const u32* row, i64 n, const u32* is_best, i32* near, f32* shares, u32& levels) {
    i64 hits = 0, i = 0;
    u32 sum = 0;
#if KLSA_ISA >= 4
    const __m512i low8 = _mm512_set1_epi32(255), low5 = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
    __m512i total = _mm512_setzero_si512();
    for (; i < n; i += 16) {
        __mmask16 in = n - i >= 16 ? 0xFFFF : (1u << (n - i)) - 1;
        __m512i e = _mm512_maskz_loadu_epi32(in, row + i), level = _mm512_and_si512(e, low8),
                other = _mm512_srli_epi32(e, 8);
        total = _mm512_add_epi32(total, level);
        in = _mm512_test_epi32_mask(level, level);
        __m512i words =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), in, _mm512_srli_epi32(other, 5), is_best, 4);
        __mmask16 m = _mm512_test_epi32_mask(_mm512_srlv_epi32(words, _mm512_and_si512(other, low5)), one);
        _mm512_storeu_si512(near + hits, _mm512_maskz_compress_epi32(m, other));
        _mm512_storeu_ps(shares + hits, _mm512_maskz_compress_ps(m, _mm512_cvtepi32_ps(level)));
        hits += __builtin_popcount(m);
    }
    sum = u32(_mm512_reduce_add_epi32(total));
#else
    for (; i < n; i++) {
        u32 level = row[i] & 255, other = row[i] >> 8;
        sum += level;
        near[hits] = i32(other);
        shares[hits] = f32(level);
        hits += (is_best[other >> 5] >> (other & 31) & 1) & (level > 0);
    }
#endif
    levels = sum;
    return hits;
}

// Coverage of eight terms: always added in the same pairs.
inline f32 covered_group(const f32* impacts, const f32* own, const i32* near, const f32* shares, i64 hits, f32 part,
                         const f32* weights, const f32* half) {
#if KLSA_ISA >= 3
    __m256 sums = _mm256_setzero_ps();
    for (i64 place = 0; place < hits; place++)
        sums =
            _mm256_add_ps(sums, _mm256_mul_ps(_mm256_set1_ps(shares[place]), _mm256_loadu_ps(impacts + near[place])));
    __m256 y = _mm256_add_ps(_mm256_loadu_ps(own), _mm256_mul_ps(_mm256_set1_ps(part), sums));
    __m256 t = _mm256_mul_ps(_mm256_loadu_ps(weights), _mm256_div_ps(y, _mm256_add_ps(y, _mm256_loadu_ps(half))));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));  // 0+4, 1+5, 2+6, 3+7
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));                          // even, odd
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
    f32 lanes[8] = {};
    for (i64 place = 0; place < hits; place++)
        for (int lane = 0; lane < 8; lane++) lanes[lane] += shares[place] * impacts[near[place] + lane];
    for (int lane = 0; lane < 8; lane++) {
        f32 y = own[lane] + part * lanes[lane];
        lanes[lane] = weights[lane] * (y / (y + half[lane]));
    }
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
#endif
}

// sums[feature] += rint(factor * level)
inline void add_levels(const u32* entries, i64 n, f32 factor, i16* sums, u8* filter) {
    i64 i = 0;
#if KLSA_ISA >= 3
    alignas(32) i32 steps[8];
    for (; i + 8 <= n; i += 8) {
        __m256i e = _mm256_loadu_si256((const __m256i*)(entries + i));
        _mm256_store_si256((__m256i*)steps,
                           _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(factor), _mm256_cvtepi32_ps(_mm256_and_si256(
                                                                                        e, _mm256_set1_epi32(255))))));
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            u32 feature = entries[i + j] >> 8;
            sums[feature] += i16(steps[j]);
            filter[feature & (FILTER - 1)] = 1;
        }
    }
#endif
    for (; i < n; i++) {
        u32 feature = entries[i] >> 8;
        sums[feature] += i16(i32(std::nearbyint(factor * f32(entries[i] & 255))));
        filter[feature & (FILTER - 1)] = 1;
    }
}

// Copy the entries of features that may have a sum; return how many.
inline i64 summed_entries(const u32* entries, i64 n, const u8* filter, u32* hits) {
    i64 count = 0;
#pragma GCC unroll 4
    for (i64 i = 0; i < n; i++) {
        u32 entry = entries[i];
        hits[count] = entry;
        count += filter[entry >> 8 & (FILTER - 1)];
    }
    return count;
}

inline i64 inner_product(const u32* entries, i64 n, const i16* sums) {
    i64 steps = 0, i = 0;
#if KLSA_ISA >= 4
    const __m512i low8 = _mm512_set1_epi32(255);
    while (i < n) {
        i64 end = n - i > 4096 ? i + 4096 : n;
        __m512i total = _mm512_setzero_si512();
        for (; i < end; i += 16) {
            __mmask16 in = end - i >= 16 ? 0xFFFF : (1u << (end - i)) - 1;
            __m512i e = _mm512_maskz_loadu_epi32(in, entries + i);
            __m512i s = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), in, _mm512_srli_epi32(e, 8), sums, 2);
            total = _mm512_add_epi32(total, _mm512_madd_epi16(s, _mm512_and_si512(e, low8)));  // the upper half times 0
        }
        // Only the sum of one lane fits 32 bits.
        steps += _mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(total)),
                                                          _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(total, 1))));
        i = end;
    }
#else
    for (; i < n; i++) steps += i64(i32(sums[entries[i] >> 8]) * i32(entries[i] & 255));
#endif
    return steps;
}

// The same, over entries of which few have a sum.
inline i64 inner_product(Array<u32> features, const FeatureSums& sums) {
    constexpr i64 AT_ONCE = 512;
    u32 hits[AT_ONCE];
    i64 steps = 0;
    for (i64 first = 0; first < features.size; first += AT_ONCE) {
        i64 size = std::min(AT_ONCE, features.size - first);
        steps += inner_product(hits, summed_entries(features.data + first, size, sums.filter.data(), hits),
                               sums.sums.data());
    }
    return steps;
}

// scores += factor * base ** exponent
inline void add_powers(const f32* base, i64 n, double exponent, f32 factor, f32* scores) {
    i64 whole = i64(exponent);
    if (whole != exponent) {
        for (i64 i = 0; i < n; i++) scores[i] += factor * f32(std::pow(double(base[i]), exponent));
        return;
    }
    for (i64 begin = 0; begin < n; begin += 16) {
        int size = n - begin < 16 ? int(n - begin) : 16;
        f32 result[16], square[16] = {};
        for (int j = 0; j < size; j++) square[j] = base[begin + j];
        for (int j = 0; j < 16; j++) result[j] = 1;
        for (i64 w = whole; w > 0; w >>= 1) {
            if (w & 1)
                for (int j = 0; j < 16; j++) result[j] *= square[j];
            for (int j = 0; j < 16; j++) square[j] *= square[j];
        }
        for (int j = 0; j < size; j++) scores[begin + j] += factor * result[j];
    }
}

}  // namespace klsa::KLSA_NS
