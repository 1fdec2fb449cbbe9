// The dot product of two vectors of integers, which is exact.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

inline i32 dot(const i8* vector, const i16* query, i64 width) {
    i32 steps = 0;
    i64 i = 0;
#if KLSA_ISA >= 4
    __m512i sum = _mm512_setzero_si512();
    for (; i + 32 <= width; i += 32)
        sum = _mm512_add_epi32(sum,
                               _mm512_madd_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)(vector + i))),
                                                 _mm512_loadu_si512(query + i)));
    steps = _mm512_reduce_add_epi32(sum);
#elif KLSA_ISA >= 3
    __m256i sum = _mm256_setzero_si256();
    for (; i + 16 <= width; i += 16)
        sum =
            _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(vector + i))),
                                                    _mm256_loadu_si256((const __m256i*)(query + i))));
    __m128i h = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4E));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0xB1));
    steps = _mm_cvtsi128_si32(h);
#endif
    for (; i < width; i++) steps += i32(vector[i]) * i32(query[i]);
    return steps;
}

}  // namespace klsa::KLSA_NS
