// Dot products of vectors of 8-bit integers, which are exact.
namespace klsa::KLSA_NS {

inline i32 dot_product(const i8* vector, const i16* query, i64 width) {
    i32 total = 0;
    i64 i = 0;
#if KLSA_ISA >= 4
    __m512i sums = _mm512_setzero_si512();
    for (; i + 32 <= width; i += 32) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(vector + i));
        sums = _mm512_add_epi32(sums, _mm512_madd_epi16(_mm512_cvtepi8_epi16(bytes), _mm512_loadu_si512(query + i)));
    }
    total = _mm512_reduce_add_epi32(sums);
#elif KLSA_ISA >= 3
    __m256i sums = _mm256_setzero_si256();
    for (; i + 16 <= width; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(vector + i));
        const __m256i factors = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + i));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_cvtepi8_epi16(bytes), factors));
    }
    alignas(32) i32 lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
    for (i32 lane : lanes) total += lane;
#endif
    for (; i < width; i++) total += i32(vector[i]) * i32(query[i]);
    return total;
}

// cosines[d] = the largest of it and the cosines of the vectors of document d.
inline void add_cosines(const i8* rows, const i32* documents, const f32* scales, i64 count, const i16* query, i64 width,
                        f32 scale, f32* cosines) {
    for (i64 i = 0; i < count; i++) {
        const f32 cosine = f32(dot_product(rows + i * width, query, width)) * (scales[i] * scale);
        f32& largest = cosines[documents[i]];
        largest = std::max(largest, cosine);
    }
}

}  // namespace klsa::KLSA_NS
