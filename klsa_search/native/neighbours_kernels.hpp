// The nearest neighbours of a document: candidates by partial sums over truncated postings, then
// their entries of K.
namespace klsa::KLSA_NS {

// Write the largest features of a document to the query, in order. `starts` is of the postings of
// all documents together.
inline void select_query(const KnnDocuments& part, i64 row, const i64* starts, const KnnLimits& limits,
                         KnnBuffers& buffers) {
    const i64 begin = part.starts[row], size = part.starts[row + 1] - begin;
    auto& order = buffers.order;
    order.resize(size_t(size));
    for (i64 i = 0; i < size; i++)
        order[size_t(i)] = i64(std::bit_cast<i32>(part.weights[begin + i])) << 32 | (LOW - i);
    std::sort(order.begin(), order.end(), std::greater<>());
    buffers.query.clear();
    buffers.query_weights.clear();
    i64 spent = 0;
    for (i64 key : order) {
        const i64 at = begin + LOW - (key & LOW), feature = part.columns[at];
        const i64 postings = starts[feature + 1] - starts[feature];
        if (postings == 0 || (!buffers.query.empty() && spent + postings > limits.postings)) continue;
        buffers.query.push_back(i32(feature));
        buffers.query_weights.push_back(part.weights[at]);
        spent += postings;
        if (i64(buffers.query.size()) == limits.features) break;
    }
}

// Add weight * value to the sum of each document; append the documents whose sum was 0 before.
inline i64 add_values(const i32* documents, const f32* values, i64 count, f32 weight, f32* sums, i32* touched,
                      i64 touches) {
    i64 i = 0;
#if KLSA_ISA >= 4
    const __m512 factor = _mm512_set1_ps(weight), zero = _mm512_setzero_ps();
    for (; i + 16 <= count; i += 16) {
        const __m512i at = _mm512_loadu_si512(documents + i);
        const __m512 before = _mm512_i32gather_ps(at, sums, 4);
        const __m512 after = _mm512_add_ps(before, _mm512_mul_ps(factor, _mm512_loadu_ps(values + i)));
        _mm512_i32scatter_ps(sums, at, after, 4);  // the documents differ
        const __mmask16 is_new =
            _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(before, zero, _CMP_EQ_OQ), after, zero, _CMP_GT_OQ);
        _mm512_storeu_si512(touched + touches, _mm512_maskz_compress_epi32(is_new, at));
        touches += __builtin_popcount(is_new);
    }
#endif
    for (; i < count; i++) {
        const i32 document = documents[i];
        const f32 before = sums[document], after = before + weight * values[i];
        sums[document] = after;
        touched[touches] = document;
        touches += (before == 0) & (after > 0);
    }
    return touches;
}

// Add the keys of the best candidates for doc id d in one part to those of earlier parts.
inline void find_candidates(const KnnDocuments& part, i64 d, i64 limit, KnnBuffers& buffers) {
    f32* sums = buffers.sums.data();
    i32* touched = buffers.touched.data();
    i64 touches = 0;
    for (size_t i = 0; i < buffers.query.size(); i++) {
        const i64 begin = part.posting_starts[buffers.query[i]], end = part.posting_starts[buffers.query[i] + 1];
        touches = add_values(part.posting_documents + begin, part.posting_values + begin, end - begin,
                             buffers.query_weights[i], sums, touched, touches);
    }
    auto& keys = buffers.keys;
    i64 least = LOW;
    auto add = [&](i64 x, f32 sum) {
        // Positive floats are ordered like their bits.
        const i64 key = i64(std::bit_cast<i32>(sum)) << 32 | (LOW - part.first - x);
        if (key <= least || x + part.first == d) return;
        keys.push_back(key);
        if (i64(keys.size()) == 4 * limit) {
            least = select_largest(keys.data(), 4 * limit, limit);
            keys.resize(size_t(limit));
        }
    };
    i64 i = 0;
#if KLSA_ISA >= 4
    alignas(64) i32 hits[16];
    alignas(64) f32 hit_sums[16];
    for (; i + 16 <= touches; i += 16) {
        const __m512i at = _mm512_loadu_si512(touched + i);
        const __m512 sum = _mm512_i32gather_ps(at, sums, 4);
        _mm512_i32scatter_ps(sums, at, _mm512_setzero_ps(), 4);
        const __mmask16 is_hit = _mm512_cmpge_epi32_mask(_mm512_castps_si512(sum), _mm512_set1_epi32(i32(least >> 32)));
        _mm512_store_si512(hits, _mm512_maskz_compress_epi32(is_hit, at));
        _mm512_store_ps(hit_sums, _mm512_maskz_compress_ps(is_hit, sum));
        const int count = __builtin_popcount(is_hit);
        for (int hit = 0; hit < count; hit++) add(hits[hit], hit_sums[hit]);
    }
#endif
    for (; i < touches; i++) {
        const i32 x = touched[i];
        const f32 sum = sums[x];
        sums[x] = 0;
        add(x, sum);
    }
    if (i64(keys.size()) > limit) {
        select_largest(keys.data(), i64(keys.size()), limit);
        keys.resize(size_t(limit));
    }
}

// The inner product of a document with `dense`, summed in order; `filter` tells which may be 0.
inline f32 inner_product(const i32* columns, const f32* weights, i64 count, const f32* dense, const u8* filter) {
    f32 total = 0;
    i64 i = 0;
#if KLSA_ISA >= 4
    alignas(64) i32 hit_columns[16];
    alignas(64) f32 hit_weights[16];
    const __m512i mask = _mm512_set1_epi32(FILTER_MASK), low = _mm512_set1_epi32(1);
    for (; i < count; i += 16) {
        const __mmask16 inside = count - i >= 16 ? 0xFFFF : __mmask16((1u << (count - i)) - 1);
        const __m512i column = _mm512_maskz_loadu_epi32(inside, columns + i);
        const __m512i bytes =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), inside, _mm512_and_si512(column, mask), filter, 1);
        const __mmask16 is_hit = _mm512_test_epi32_mask(bytes, low);
        _mm512_store_si512(hit_columns, _mm512_maskz_compress_epi32(is_hit, column));
        _mm512_store_ps(hit_weights, _mm512_maskz_compress_ps(is_hit, _mm512_maskz_loadu_ps(inside, weights + i)));
        const int hits = __builtin_popcount(is_hit);
        for (int hit = 0; hit < hits; hit++) total += hit_weights[hit] * dense[hit_columns[hit]];
    }
#elif KLSA_ISA >= 3
    const __m256i mask = _mm256_set1_epi32(FILTER_MASK);
    for (; i + 8 <= count; i += 8) {
        const __m256i column = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns + i));
        const __m256i bytes =
            _mm256_i32gather_epi32(reinterpret_cast<const i32*>(filter), _mm256_and_si256(column, mask), 1);
        u32 is_hit = u32(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(bytes, 31))));
        for (; is_hit; is_hit &= is_hit - 1) {
            const i64 p = i + std::countr_zero(is_hit);
            total += weights[p] * dense[columns[p]];
        }
    }
#endif
    for (; i < count; i++)
        if (filter[columns[i] & FILTER_MASK]) total += weights[i] * dense[columns[i]];
    return total;
}

// Add the keys of the positive entries of the row of K of `row` of `own` in one part.
inline void score_candidates(const KnnDocuments& own, i64 row, const KnnDocuments& part, KnnBuffers& buffers) {
    auto& others = buffers.others;
    others.clear();
    for (i64 key : buffers.keys) {
        const i64 x = LOW - (key & LOW) - part.first;
        if (x >= 0 && x < part.documents) others.push_back(i32(x));
    }
    const f32 scale = own.scales[row], towards = own.towards_mean[row];
    const f32* dense = buffers.dense.data();
    for (size_t i = 0; i < others.size(); i++) {
        if (i + 6 < others.size()) {
            const i64 begin = part.starts[others[i + 6]], end = part.starts[others[i + 6] + 1];
            for (i64 p = begin; p < end; p += 16) {
                prefetch(part.columns + p);
                prefetch(part.weights + p);
            }
        }
        const i64 x = others[i], begin = part.starts[x];
        f32 total = inner_product(part.columns + begin, part.weights + begin, part.starts[x + 1] - begin, dense,
                                  buffers.filter.data());
        total -= towards * part.scales[x] + scale * (part.towards_mean[x] - part.scales[x] * part.mean_square);
        if (total <= 0) continue;
        buffers.entries.push_back(i64(std::bit_cast<i32>(total)) << 32 | (LOW - x - part.first));
    }
}

// Write the `width` largest entries of K of a document of `own`, in document order; return how many.
inline i64 find_neighbours(const KnnDocuments& own, i64 row, const KnnDocuments* parts, i64 count, const i64* starts,
                           const KnnLimits& limits, KnnBuffers& buffers, i64 width, i32* columns, f32* values) {
    const i64 d = own.first + row;
    select_query(own, row, starts, limits, buffers);
    buffers.keys.clear();
    buffers.entries.clear();
    for (i64 i = 0; i < count; i++) find_candidates(parts[i], d, limits.candidates, buffers);
    buffers.keys.push_back(LOW - d);
    for (i64 p = own.starts[row]; p < own.starts[row + 1]; p++) {
        buffers.dense[size_t(own.columns[p])] = own.weights[p];
        buffers.filter[size_t(own.columns[p] & FILTER_MASK)] = 1;
    }
    for (i64 i = 0; i < count; i++) score_candidates(own, row, parts[i], buffers);
    for (i64 p = own.starts[row]; p < own.starts[row + 1]; p++) {
        buffers.dense[size_t(own.columns[p])] = 0;
        buffers.filter[size_t(own.columns[p] & FILTER_MASK)] = 0;
    }
    auto& entries = buffers.entries;
    const i64 size = std::min(i64(entries.size()), width);
    if (size < i64(entries.size())) select_largest(entries.data(), i64(entries.size()), size);
    std::sort(entries.begin(), entries.begin() + size, [](i64 a, i64 b) { return (a & LOW) > (b & LOW); });
    for (i64 i = 0; i < size; i++) {
        columns[i] = i32(LOW - (entries[size_t(i)] & LOW));
        values[i] = std::bit_cast<f32>(i32(entries[size_t(i)] >> 32));
    }
    return size;
}

}  // namespace klsa::KLSA_NS
