// The nearest neighbours of a document: candidates by partial sums over truncated postings, then
// their entries of K. Both are found in one part after another.
namespace klsa::KLSA_NS {

// Write the largest features of a document to the query, in order. `counts` is of the postings of
// all documents together.
inline void select_query(const KnnDocuments& part, i64 row, const i64* counts, const KnnLimits& limits,
                         KnnBuffers& buffers) {
    const i64 begin = part.starts[row], size = part.starts[row + 1] - begin;
    auto& order = buffers.order;
    order.resize(size_t(size));
    for (i64 i = 0; i < size; i++) order[size_t(i)] = float_key(part.weights[begin + i], i);
    std::sort(order.begin(), order.end(), std::greater<>());
    buffers.query.clear();
    buffers.query_weights.clear();
    i64 spent = 0;
    for (i64 key : order) {
        const i64 at = begin + document_of(key), feature = part.columns[at];
        const i64 postings = counts[feature];
        if (postings == 0 || (!buffers.query.empty() && spent + postings > limits.postings)) continue;
        buffers.query.push_back(i32(feature));
        buffers.query_weights.push_back(part.weights[at]);
        spent += postings;
        if (i64(buffers.query.size()) == limits.features) break;
    }
}

// Add the postings of a feature with doc ids in [begin, end), times a weight, to the sums of these documents;
// posting `at` is the first, `after` is the end of all. Return where the others begin.
inline i64 add_values(const i32* documents, const f32* values, i64 at, i64 after, i64 begin, i64 end, f32 weight,
                      f32* sums) {
    f32* of_block = sums - begin;
#if KLSA_ISA >= 4
    alignas(64) f32 products[16];
    const __m512 weights = _mm512_set1_ps(weight);
    for (; at + 16 <= after && documents[at + 15] < end; at += 16) {
        _mm512_store_ps(products, _mm512_mul_ps(weights, _mm512_loadu_ps(values + at)));
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) of_block[documents[at + i]] += products[i];
    }
#else
    for (; at + 8 <= after && documents[at + 7] < end; at += 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) of_block[documents[at + i]] += weight * values[at + i];
    }
#endif
    for (; at < after && documents[at] < end; at++) of_block[documents[at]] += weight * values[at];
    return at;
}

// The same, and append the documents whose sums were 0, numbered in the block, so that only these are looked at
// afterwards.
inline i64 add_sparse_values(const i32* documents, const f32* values, i64 at, i64 after, i64 begin, i64 end, f32 weight,
                             f32* sums, i32*& touched) {
    for (; at < after && documents[at] < end; at++) {
        const i32 x = i32(documents[at] - begin);
        *touched = x;
        touched += sums[x] == 0;  // without a branch
        sums[x] += weight * values[at];
    }
    return at;
}

// Return a sum that `limit` documents of a block reach, or 0 if the block is too small to tell: the least of the
// largest of so many groups. There are about three times as many, KNN_LINE in each span of documents.
inline f32 reached_sum(const f32* sums, i64 size, i64 limit, std::vector<f32>& largest) {
    const i64 lines = (size + KNN_LINE - 1) / KNN_LINE, of_span = std::max(lines * KNN_LINE / (3 * limit), i64(1));
    largest.clear();
    for (i64 first = 0; first < lines; first += of_span) {
        f32 best[KNN_LINE] = {};
        for (i64 line = first; line < std::min(first + of_span, lines); line++)
            for (i64 j = 0; j < KNN_LINE; j++) best[j] = std::max(best[j], sums[line * KNN_LINE + j]);
        largest.insert(largest.end(), best, best + KNN_LINE);
    }
    if (i64(largest.size()) < limit) return 0;
    std::nth_element(largest.begin(), largest.begin() + (limit - 1), largest.end(), std::greater<>());
    return largest[size_t(limit - 1)];
}

// A mask of which of KNN_LINE sums have at least these bits; positive floats are ordered like their bits.
inline u32 reaching(const f32* sums, i32 bits) {
#if KLSA_ISA >= 4
    return _mm512_cmpge_epi32_mask(_mm512_loadu_si512(sums), _mm512_set1_epi32(bits));
#elif KLSA_ISA >= 3
    const __m256i less = _mm256_set1_epi32(bits - 1);
    auto mask = [&](const f32* eight) {
        const __m256i of_eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(eight));
        return u32(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(of_eight, less))));
    };
    return mask(sums) | mask(sums + 8) << 8;
#else
    u32 mask = 0;
    for (i64 j = 0; j < KNN_LINE; j++) mask |= u32(std::bit_cast<i32>(sums[j]) >= bits) << j;
    return mask;
#endif
}

// Append the keys of the sums of a block that reach `least` and are positive, and clear the sums. The first document
// of the block is `first`.
inline void take_sums(f32* sums, i64 size, f32 least, i64 first, std::vector<i64>& keys) {
    const i32 bits = std::max(std::bit_cast<i32>(least), 1);
    for (i64 line = 0; line < size; line += KNN_LINE) {
        for (u32 mask = reaching(sums + line, bits); mask; mask &= mask - 1) {
            const i64 at = line + std::countr_zero(mask);
            keys.push_back(float_key(sums[at], first + at));
        }
        std::fill_n(sums + line, KNN_LINE, 0.0f);
    }
}

// The same for the documents of a block that have postings.
inline void take_sparse_sums(f32* sums, std::span<const i32> touched, f32 least, i64 first, std::vector<i64>& keys) {
    const i32 bits = std::max(std::bit_cast<i32>(least), 1);
    for (i32 x : touched) {
        if (std::bit_cast<i32>(sums[x]) >= bits) keys.push_back(float_key(sums[x], first + x));
        sums[x] = 0;
    }
}

// Add the best candidates for a document of `own` in one part to those of earlier parts: their keys, then 0.
inline void find_candidates(const KnnDocuments& own, i64 row, const KnnDocuments& part, const i64* counts,
                            const KnnLimits& limits, KnnBuffers& buffers, std::span<i64> best) {
    select_query(own, row, counts, limits, buffers);
    const i64 limit = i64(best.size());
    auto& keys = buffers.keys;
    keys.assign(best.begin(), std::find(best.begin(), best.end(), 0));
    buffers.least = i64(keys.size()) < limit ? 0 : value_of(*std::min_element(keys.begin(), keys.end()));
    f32* sums = buffers.sums.data();
    const size_t lists = buffers.query.size();
    i64 postings = 0;
    buffers.places.resize(lists + KNN_AHEAD);
    for (size_t i = 0; i < lists; i++) {
        buffers.places[i] = part.posting_starts[buffers.query[i]];
        postings += part.posting_starts[buffers.query[i] + 1] - buffers.places[i];
    }
    for (size_t i = 0; i < KNN_AHEAD; i++) buffers.places[lists + i] = 0;
    const bool sparse = postings * KNN_SPARSE < part.documents;
    const i64 block = sparse ? KNN_SPARSE_BLOCK : KNN_BLOCK;
    buffers.touched.resize(sparse ? size_t(postings + 1) : 0);
    for (i64 begin = 0; begin < part.documents; begin += block) {
        const i64 end = std::min(begin + block, part.documents);
        i32* touched = buffers.touched.data();
        for (size_t i = 0; i < lists; i++) {
            for (i64 line = 0; line < 4; line++) {
                prefetch(part.posting_documents + buffers.places[i + KNN_AHEAD] + KNN_LINE * line);
                prefetch(part.posting_values + buffers.places[i + KNN_AHEAD] + KNN_LINE * line);
            }
            const i64 after = part.posting_starts[buffers.query[i] + 1];
            const f32 weight = buffers.query_weights[i];
            i64& at = buffers.places[i];
            at = sparse ? add_sparse_values(part.posting_documents, part.posting_values, at, after, begin, end, weight,
                                            sums, touched)
                        : add_values(part.posting_documents, part.posting_values, at, after, begin, end, weight, sums);
        }
        const i64 itself = own.first + row - part.first - begin;
        if (itself >= 0 && itself < end - begin) sums[itself] = 0;
        if (sparse) {
            take_sparse_sums(sums, {buffers.touched.data(), touched}, buffers.least, part.first + begin, keys);
        } else {
            if (i64(keys.size()) < limit) buffers.least = reached_sum(sums, end - begin, limit, buffers.largest);
            take_sums(sums, end - begin, buffers.least, part.first + begin, keys);
        }
        if (i64(keys.size()) > 2 * limit || (i64(keys.size()) > limit && end == part.documents)) {
            buffers.least = value_of(select_largest(keys.data(), i64(keys.size()), limit));
            keys.resize(size_t(limit));
        }
    }
    std::copy(keys.begin(), keys.end(), best.begin());
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

// Add the keys of the positive entries of the row of K of `row` of `own` for some documents of a part, `others`.
inline void score_candidates(const KnnDocuments& own, i64 row, const KnnDocuments& part, KnnBuffers& buffers) {
    const auto& others = buffers.others;
    const f32 scale = own.scales[row], towards = own.towards_mean[row];
    const f32* dense = buffers.dense.data();
    for (size_t i = 0; i < others.size(); i++) {
        if (i + 8 < others.size()) {
            prefetch(part.starts + others[i + 8]);
            prefetch(part.scales + others[i + 8]);
            prefetch(part.towards_mean + others[i + 8]);
        }
        if (i + 4 < others.size()) {
            const i64 begin = part.starts[others[i + 4]], end = part.starts[others[i + 4] + 1];
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
        buffers.entries.push_back(float_key(total, x + part.first));
    }
}

// Add the entries of K of a document of `own` for its candidates in one part, and for itself, to those of earlier
// parts: the largest, in document order, then 0.
inline void add_entries(const KnnDocuments& own, i64 row, const KnnDocuments& part, std::span<const i64> candidates,
                        KnnBuffers& buffers, std::span<i32> columns, std::span<f32> values) {
    auto& others = buffers.others;
    auto& entries = buffers.entries;
    others.clear();
    auto add = [&](i64 document) {
        const i64 x = document - part.first;
        if (x >= 0 && x < part.documents) others.push_back(i32(x));
    };
    for (i64 key : candidates) add(document_of(key));
    add(own.first + row);
    entries.clear();
    for (size_t i = 0; i < values.size() && values[i] > 0; i++) entries.push_back(float_key(values[i], columns[i]));
    for (i64 p = own.starts[row]; p < own.starts[row + 1]; p++) {
        buffers.dense[size_t(own.columns[p])] = own.weights[p];
        buffers.filter[size_t(own.columns[p] & FILTER_MASK)] = 1;
    }
    score_candidates(own, row, part, buffers);
    for (i64 p = own.starts[row]; p < own.starts[row + 1]; p++) {
        buffers.dense[size_t(own.columns[p])] = 0;
        buffers.filter[size_t(own.columns[p] & FILTER_MASK)] = 0;
    }
    if (entries.size() > values.size()) {
        select_largest(entries.data(), i64(entries.size()), i64(values.size()));
        entries.resize(values.size());
    }
    std::sort(entries.begin(), entries.end(), [](i64 a, i64 b) { return document_of(a) < document_of(b); });
    for (size_t i = 0; i < entries.size(); i++) {
        columns[i] = i32(document_of(entries[i]));
        values[i] = value_of(entries[i]);
    }
}

}  // namespace klsa::KLSA_NS
