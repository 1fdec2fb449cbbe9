// The k best documents of a query by BM25, exactly, reading as few postings as possible.
//
// Documents are scored segment by segment, in blocks whose accumulator fits the L1 cache. In a block
//   1. each term has a range of postings and an upper bound of its impact;
//   2. a block whose bounds add up to no more than the threshold is skipped;
//   3. as in MaxScore the weakest terms, whose bounds add up to a share of the threshold, are
//      optional; the postings of the others are added to the accumulator;
//   4. documents that can still pass are candidates; optional terms are looked up for candidates, or
//      added like the others if there are many candidates;
//   5. documents that pass go to a buffer of keys; a full buffer is cut to k, which raises the
//      threshold.
// Scores of documents that are deleted or outside a mask are set to 0 once the postings of a block
// are added. The total, if requested, counts documents that contain a term, also in skipped blocks.
//
// The threshold starts at a score that k documents are known to reach by a single term. The first
// block gives a higher one. With one block k of its documents reach it; with several it is an
// estimate, from a few times the number of documents expected from this block: if fewer than k
// documents pass, all blocks are scored again without it.
//
// Scores are integers, so neither the order of terms, nor skipping, nor the number of threads
// changes a bit. Adding a posting takes 0.25 to 0.5 ns, less than most ways to avoid it; so terms
// are seldom optional. Results do not depend on the constants.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr i64 FEW = 64;     // postings of a block up to which they are read again, not its scores
constexpr i64 MARGIN = 3;   // assumed ratio of the first block's share of the k best to the mean
constexpr i64 SAMPLE = 16;  // documents that a guess is based on, at least

inline Hits State::bm25(Array<QueryTerm> query, const Request& request) {
    load_query(query, request.k);
    is_masked_ = request.is_masked;
    totals_ = request.totals;
    i64 count = best_keys(request.mask, request.k);
    sort_descending(b.keys.data(), count, b.spare_keys.data());
    Hits hits;
    hits.total = totals_ ? total_ : 0;
    hits.documents.resize(count);
    hits.scores.resize(count);
    for (i64 i = 0; i < count; i++) {
        hits.documents[i] = i32(document_of(b.keys[i]));
        hits.scores[i] = f32(double(b.keys[i] >> 32) * p.step);
    }
    return hits;
}

// Collect the keys of the k best documents, unsorted; return how many.
inline i64 State::best_keys(const Mask& mask, i64 k) {
    i64 filled = 0;
    total_ = 0;
    if (terms == 0) return 0;
    for (i64 margin : {MARGIN, i64(0)}) {
        bool guessed = false;
        filled = collect_keys(mask, k, margin, guessed);
        if (filled >= k || !guessed) break;
    }
    if (filled <= k) return filled;
    select_largest(b.keys.data(), filled, k);
    return k;
}

// Collect the keys of the k best and some more; return how many, and whether by a guess.
inline i64 State::collect_keys(const Mask& mask, i64 k, i64 margin, bool& guessed) {
    i64 width = i64(1) << p.block_bits, block = 0;
    total_ = 0;
    i64 threshold = is_masked_ ? 0 : initial_threshold(k + p.deleted);
    Collected c{k, 0, threshold << 32 | LOW};
    i32* scores = b.accumulator.data();
    for (size_t s = 0; s < p.segments.size(); s++) {
        const Segment& segment = p.segments[s];
        const u32* entries = segment.entries.data;
        seek_segment(segment, block + i64(s));
        for (i64 number = 0; number < segment.blocks; number++, block++) {
            i64 first = segment.first + number * width;
            i64 after = std::min(first + width, segment.first + segment.size);
            i64 bound = seek_block(segment, number, block + i64(s));
            if (bound <= threshold) {
                if (totals_ && bound > 0) {
                    total_ += count_unscored(terms, entries, mask, first, after);
                    clear_scores(terms, entries);
                }
                continue;
            }
            Optional optional = optional_terms(threshold, k);
            i64 added = add_terms(optional.count, terms, entries);
            // Whole vectors; all scores beyond the last document are 0.
            i64 span = (after - first + LANES - 1) / LANES * LANES;
            bool is_short = added <= FEW && optional.count == 0, no_candidates = false;
            if (!mask.is_all()) apply_mask(mask, first, span);
            if (optional.count > 0) {
                i64 candidates = count_above(scores, span, threshold - optional.slack);
                no_candidates = candidates == 0;
                if (candidates * LOOK_UP > optional.skipped) {
                    add_terms(0, optional.count, entries);
                    optional = {};
                    if (!mask.is_all()) apply_mask(mask, first, span);
                }
            }
            if (totals_ && !is_short) {
                total_ += count_above(scores, span, 0);
                total_ += count_unscored(optional.count, entries, mask, first, after);
            }
            if (no_candidates) {
                std::fill_n(scores, span, 0);
                continue;
            }
            if (block == 0 && margin > 0 && optional.count == 0 && !is_short) {
                i64 share = margin * k * (after - first) / p.size;
                i64 target = std::min(std::max(share, SAMPLE), k);
                i64 reached = reached_by(span, threshold, bound, target);
                if (reached > threshold) {
                    guessed = target < k;
                    threshold = reached;
                    c.threshold_key = reached << 32 | LOW;
                }
            }
            if (is_short)
                collect_postings(entries, first, after, c);
            else if (optional.count == 0)
                collect_block(first, after, c);
            else
                collect_candidates(entries, optional, first, after, c);
            threshold = std::max(threshold, c.threshold());
        }
    }
    return c.filled;
}

// Add the postings of terms begin to end in the block; return how many.
inline i64 State::add_terms(i64 begin, i64 end, const u32* entries) {
    constexpr i64 AHEAD = 256;
    i64 added = 0;
    for (i64 j = begin; j < end; j++) {
        if (j + 1 < end) {  // the start of the next list, which the hardware cannot predict
            const Term& next = b.terms[j + 1];
            i64 last = std::min(next.first + AHEAD, next.after);
            for (i64 i = next.first; i < last; i += 16) fetch_line(entries + i);
        }
        i64 count = b.terms[j].after - b.terms[j].first;
        add_postings(b.accumulator.data(), entries + b.terms[j].first, count, b.terms[j].weight);
        added += count;
    }
    return added;
}

// Set the block's scores of documents outside a mask to 0.
inline void State::apply_mask(const Mask& mask, i64 first, i64 span) {
    for (i64 place = 0; place < span; place += 64) {
        u64 word = mask.words[(first + place) >> 6];
        for (int i = 0; i < 64; i++) b.accumulator[place + i] &= -i32(word >> i & 1);
    }
}

// Count the documents of the block with one of the first terms but no score. They are marked by -1,
// which is below any threshold.
inline i64 State::count_unscored(i64 count, const u32* entries, const Mask& mask, i64 first, i64 after) {
    i64 total = 0;
    for (i64 j = 0; j < count; j++)
        for (i64 i = b.terms[j].first; i < b.terms[j].after; i++) {
            i64 place = entries[i] >> 16, document = first + place;
            if (b.accumulator[place] == 0 && document < after && mask.contains(document)) {
                b.accumulator[place] = -1;
                total++;
            }
        }
    return total;
}

inline void State::clear_scores(i64 count, const u32* entries) {
    for (i64 j = 0; j < count; j++)
        for (i64 i = b.terms[j].first; i < b.terms[j].after; i++) b.accumulator[entries[i] >> 16] = 0;
}

// Collect keys from a block of few postings and clear its scores; count its documents.
inline void State::collect_postings(const u32* entries, i64 first, i64 after, Collected& c) {
    for (i64 j = 0; j < terms; j++)
        for (i64 i = b.terms[j].first; i < b.terms[j].after; i++) {
            i64 place = entries[i] >> 16, score = b.accumulator[place];
            b.accumulator[place] = 0;
            if (first + place >= after) continue;
            total_ += score > 0;
            collect(score, first + place, c);
        }
}

// Collect keys from a block whose terms are all added, and clear its scores.
inline void State::collect_block(i64 first, i64 after, Collected& c) {
    alignas(64) i32 taken[LANES];
    for (i64 begin = first; begin < after; begin += LANES) {
        i32* scores = b.accumulator.data() + (begin - first);
        u64 mask = take_above(scores, i32(c.threshold()), taken);
        if (after - begin < LANES) mask &= (u64(1) << (after - begin)) - 1;
        for (; mask; mask &= mask - 1) {
            int i = __builtin_ctzll(mask);
            collect(taken[i], begin + i, c);
        }
    }
}

// Collect keys from a block; look up the optional terms of candidates, strongest first.
inline void State::collect_candidates(const u32* entries, const Optional& optional, i64 first, i64 after,
                                      Collected& c) {
    i32* scores = b.accumulator.data();
    for (i64 place = 0; place < after - first; place += WIDTH) {
        i64 width = std::min<i64>(WIDTH, after - first - place);
        u32 mask = mask_above(scores + place, width, i32(c.threshold() - optional.slack));
        for (; mask; mask &= mask - 1) {
            i64 offset = place + __builtin_ctz(mask), score = scores[offset], rest = optional.slack;
            for (i64 j = optional.count - 1; j >= 0 && score + rest > c.threshold(); j--) {
                const Term& t = b.terms[j];
                if (t.after > t.first) {
                    u32 last = u32(offset << 16 | 0xFFFF);
                    u32 entry = entries[find(entries, t.first, t.after, last)];
                    if (entry >> 16 == u32(offset)) score += impact(t.weight, entry & 0xFFFF);
                }
                rest -= t.bound;
            }
            collect(score, first + offset, c);
        }
    }
    std::fill_n(scores, (after - first + LANES - 1) / LANES * LANES, 0);
}

// Add a key to the buffer if it passes; cut a full buffer to k, which raises the threshold.
inline void State::collect(i64 score, i64 document, Collected& c) {
    i64 key = key_of(score, document);
    if (key <= c.threshold_key) return;
    b.keys[c.filled++] = key;
    if (c.filled < Buffers::key_buffer_size(c.k)) return;
    select_largest(b.keys.data(), c.filled, c.k);
    c.filled = c.k;
    c.threshold_key = b.keys[c.k - 1];
}

// A score that `target` documents of the block exceed, by the maxima of groups of documents: each
// group has one document at least that does, so the result is never too high.
inline i64 State::reached_by(i64 span, i64 threshold, i64 bound, i64 target) {
    i64 per_group = 1;
    while (per_group < 32 && span / (2 * per_group) >= 8 * target) per_group *= 2;
    const i32* maxima = b.maxima.data();
    i64 groups = group_maxima(b.accumulator.data(), span, per_group, b.maxima.data());
    if (count_above(maxima, groups, threshold) < target) return threshold;
    i32 highest = *std::max_element(maxima, maxima + groups);
    return bisect(maxima, groups, threshold, std::min<i64>(bound, highest), target, false);
}

}  // namespace klsa::KLSA_NS
