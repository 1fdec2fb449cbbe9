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

// Add the postings of a feature with doc ids in [begin, end), times a weight, to the sums of these documents;
// posting `at` is the first. Return where the others begin.
inline i64 add_values(const i32* documents, const f32* values, i64 at, i64 size, i64 begin, i64 end, f32 weight,
                      f32* sums) {
    for (; at < size && documents[at] < end; at++) sums[documents[at] - begin] += weight * values[at];
    return at;
}

// Write the largest sum of each group of documents, KNN_LINE in each span of KNN_SPAN: those that are equal modulo
// KNN_LINE. Return the number of groups.
inline i64 largest_of_groups(const f32* sums, i64 size, f32* largest) {
    i64 groups = 0;
    for (i64 x = 0; x < size; x += KNN_SPAN, groups += KNN_LINE) {
        f32* of_span = largest + groups;
        std::fill_n(of_span, KNN_LINE, 0.0f);
        for (i64 at = x; at < x + KNN_SPAN; at += KNN_LINE)
            for (i64 j = 0; j < KNN_LINE; j++) of_span[j] = sums[at + j] > of_span[j] ? sums[at + j] : of_span[j];
    }
    return groups;
}

// Return a sum that all of the `limit` best candidates so far and of this block reach.
inline f32 least_candidate(i64 limit, i64 groups, KnnBuffers& buffers) {
    auto& keys = buffers.keys;
    if (i64(keys.size()) >= limit)
        return std::bit_cast<f32>(i32(select_largest(keys.data(), i64(keys.size()), limit) >> 32));
    if (groups <= limit) return 0;
    // One group may be that of the document itself.
    auto& sorted = buffers.sorted;
    sorted.assign(buffers.largest.begin(), buffers.largest.begin() + groups);
    std::nth_element(sorted.begin(), sorted.begin() + limit, sorted.end(), std::greater<>());
    return sorted[size_t(limit)];
}

// Add the keys of the best candidates for doc id d in one part to those of earlier parts.
inline void find_candidates(const KnnDocuments& part, i64 d, i64 limit, KnnBuffers& buffers) {
    auto& keys = buffers.keys;
    f32* sums = buffers.sums.data();
    buffers.places.assign(buffers.query.size(), 0);
    for (i64 begin = 0; begin < part.documents; begin += KNN_BLOCK) {
        const i64 end = std::min(begin + KNN_BLOCK, part.documents);
        for (size_t i = 0; i < buffers.query.size(); i++) {
            const i64 first = part.posting_starts[buffers.query[i]], after = part.posting_starts[buffers.query[i] + 1];
            buffers.places[i] =
                add_values(part.posting_documents + first, part.posting_values + first, buffers.places[i],
                           after - first, begin, end, buffers.query_weights[i], sums);
        }
        const i64 groups = largest_of_groups(sums, end - begin, buffers.largest.data());
        const f32 least = least_candidate(limit, groups, buffers);
        for (i64 group = 0; group < groups; group++) {
            if (!(buffers.largest[size_t(group)] >= least && buffers.largest[size_t(group)] > 0)) continue;
            const i64 offset = group / KNN_LINE * KNN_SPAN + group % KNN_LINE;
            for (i64 at = offset; at < offset + KNN_SPAN; at += KNN_LINE) {
                const f32 sum = sums[at];
                const i64 x = part.first + begin + at;
                // Positive floats are ordered like their bits.
                if (sum >= least && sum > 0 && x != d) keys.push_back(i64(std::bit_cast<i32>(sum)) << 32 | (LOW - x));
            }
        }
        std::fill_n(sums, end - begin, 0.0f);
        if (i64(keys.size()) > limit) {
            select_largest(keys.data(), i64(keys.size()), limit);
            keys.resize(size_t(limit));
        }
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
        if (i + 3 < others.size()) {
            const i64 begin = part.starts[others[i + 3]], end = part.starts[others[i + 3] + 1];
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
