// Products of sparse features with blocks of vectors, and of vectors of 8-bit integers. Sums of floats
// are in the order of documents or features, one after the other, so the bits do not depend on threads
// or instruction sets.
#include "dot.hpp"

namespace klsa::KLSA_NS {

// sums += Φᵀ blocks, for the entries [begins[d], ends[d]) of each document d.
template <class W, class X>
void add_to_features(const i32* columns, const W* weights, const i64* begins, const i64* ends, i64 documents,
                     const X* blocks, i64 width, X* sums) {
    for (i64 d = 0; d < documents; d++) {
        const X* __restrict x = blocks + d * width;
        if (width == 1) {
            X* __restrict t = sums;
            const X value = *x;
            for (i64 p = begins[d], end = ends[d]; p < end; p++) t[columns[p]] = X(t[columns[p]] + weights[p] * value);
            continue;
        }
        for (i64 p = begins[d]; p < ends[d]; p++) {
            X* __restrict t = sums + i64(columns[p]) * width;
            const W weight = weights[p];
            for (i64 j = 0; j < width; j++) t[j] = X(t[j] + weight * x[j]);
        }
    }
}

// out += Φ sums, for the entries [begins[d], ends[d]) of each document d.
template <class W, class X>
void add_to_documents(const i32* columns, const W* weights, const i64* begins, const i64* ends, i64 documents,
                      const X* sums, i64 width, X* out) {
    for (i64 d = 0; d < documents; d++) {
        X* __restrict y = out + d * width;
        if (width == 1) {
            X sum = *y;
            for (i64 p = begins[d], end = ends[d]; p < end; p++) sum = X(sum + weights[p] * sums[columns[p]]);
            *y = sum;
            continue;
        }
        for (i64 p = begins[d]; p < ends[d]; p++) {
            const X* __restrict t = sums + i64(columns[p]) * width;
            const W weight = weights[p];
            for (i64 j = 0; j < width; j++) y[j] = X(y[j] + weight * t[j]);
        }
    }
}

// cosines[d] = the largest of it and the cosines of the vectors of document d.
inline void add_cosines(const i8* rows, const i32* documents, const f32* scales, i64 count, const i16* query, i64 width,
                        f32 scale, f32* cosines) {
    for (i64 i = 0; i < count; i++) {
        const f32 cosine = f32(dot(rows + i * width, query, width)) * (scales[i] * scale);
        f32& largest = cosines[documents[i]];
        largest = std::max(largest, cosine);
    }
}

}  // namespace klsa::KLSA_NS
