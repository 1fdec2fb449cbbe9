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
// are added. If a total is requested, the documents that contain a term are marked, also in skipped
// blocks.
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
    count_matches(request, 0, hits);
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
    if (totals_) std::fill_n(b.matches.data(), p.size / 64 + 1, u64(0));
    if (terms == 0) return 0;
    for (i64 margin : {least_ > 0 ? 0 : MARGIN, i64(0)}) {
        bool guessed = false;
        filled = collect_keys(mask, k, margin, guessed);
        if (filled >= k || !guessed) break;
    }
    if (filled <= k) return filled;
    select_largest(b.keys.data(), filled, k, b.spare_keys.data());
    return k;
}

// Collect the keys of the k best and some more; return how many, and whether by a guess.
inline i64 State::collect_keys(const Mask& mask, i64 k, i64 margin, bool& guessed) {
    i64 width = i64(1) << p.block_bits, block = 0;
    i64 threshold = is_masked_ ? 0 : std::max(initial_threshold(k + p.deleted), least_ - 1);
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
                if (totals_) mark_postings(terms, entries, first);
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
            if (totals_) {
                for (i64 at = 0; at < span && !is_short; at += 64) mark(first + at, mask_above(scores + at, 0));
                mark_postings(is_short ? terms : optional.count, entries, first);
            }
            if (no_candidates) {
                std::fill_n(scores, span, 0);
                continue;
            }
            if (is_short) {
                collect_postings(entries, first, after, c);
                threshold = std::max(threshold, c.threshold());
                continue;
            }
            i64 share = margin * k * (after - first) / p.size;
            i64 target = std::min(std::max(share, SAMPLE), k);
            Groups groups = group_scores(span, target);
            if (block == 0 && margin > 0 && optional.count == 0) {
                i64 reached = reached_by(groups, threshold, bound, target);
                if (reached > threshold) {
                    guessed = target < k;
                    threshold = reached;
                    c.threshold_key = reached << 32 | LOW;
                }
            }
            collect_block(groups, entries, optional, first, after, c);
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
            for (i64 i = next.first; i < last; i += 16) prefetch(entries + i);
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
        u64 word = mask.bits_from(first + place);
        for (int i = 0; i < 64; i++) b.accumulator[place + i] &= -i32(word >> i & 1);
    }
}

// Mark documents from one on, a bit each.
inline void State::mark(i64 document, u64 bits) {
    u64* words = b.matches.data() + (document >> 6);
    i64 shift = document & 63;
    words[0] |= bits << shift;
    if (shift > 0) words[1] |= bits >> (64 - shift);
}

// Mark the documents of the block that contain one of the first terms.
inline void State::mark_postings(i64 count, const u32* entries, i64 first) {
    for (i64 j = 0; j < count; j++)
        for (i64 i = b.terms[j].first; i < b.terms[j].after; i++) {
            i64 document = first + (entries[i] >> 16);
            b.matches[document >> 6] |= u64(1) << (document & 63);
        }
}

// Count the documents of the mask that are marked or have a slot; list them if that is requested.
inline void State::count_matches(const Request& request, i64 slots, Hits& hits) {
    if (!request.totals) return;
    for (i64 slot = 1; slot <= slots; slot++) mark(b.documents[slot], 1);
    const Mask& mask = request.mask;
    const i64 words = (p.size + 63) / 64;
    for (i64 at = 0; at < words; at++) {
        if (!mask.is_all()) b.matches[at] &= mask.words[at];
        hits.total += std::popcount(b.matches[at]);
    }
    if (request.lists) hits.matches.assign(b.matches.data(), b.matches.data() + words);
}

// Collect keys from a block of few postings and clear its scores.
inline void State::collect_postings(const u32* entries, i64 first, i64 after, Collected& c) {
    for (i64 j = 0; j < terms; j++)
        for (i64 i = b.terms[j].first; i < b.terms[j].after; i++) {
            i64 place = entries[i] >> 16, score = b.accumulator[place];
            b.accumulator[place] = 0;
            if (first + place < after) collect(score, first + place, c);
        }
}

// Collect keys from a block and clear its scores; look up the optional terms of candidates,
// strongest first. Scores of groups whose maximum does not pass are not read.
inline void State::collect_block(Groups groups, const u32* entries, const Optional& optional, i64 first, i64 after,
                                 Collected& c) {
    i32 *scores = b.accumulator.data(), *places = b.places.data(), *passing = b.passing.data();
    i32 limit = i32(c.threshold() - optional.slack);
    i64 count = 0, width = 16 * groups.size, span = after - first;
    for (i64 i = 0, passed = indices_above(b.maxima.data(), groups.count, limit, passing); i < passed; i++) {
        i64 begin = passing[i] / 16 * width + passing[i] % 16;
        for (i64 place = begin; place < std::min(begin + width, span); place += 16) {
            places[count] = i32(place);
            count += scores[place] > limit;
        }
    }
    if (optional.count == 0) {
        for (i64 i = 0; i < count; i++) b.keys[c.filled + i] = key_of(scores[places[i]], first + places[i]);
        c.filled += count;
        cut_keys(c);
    }
    for (i64 i = 0; i < count && optional.count > 0; i++) {
        i64 place = places[i], score = scores[place], rest = optional.slack;
        for (i64 j = optional.count - 1; j >= 0 && score + rest >= c.threshold(); j--) {
            const Term& t = b.terms[j];
            if (t.after > t.first) {
                u32 last = u32(place << 16 | 0xFFFF);
                u32 entry = entries[find(entries, t.first, t.after, last)];
                if (entry >> 16 == u32(place)) score += impact(t.weight, entry & 0xFFFF);
            }
            rest -= t.bound;
        }
        collect(score, first + place, c);
    }
    std::fill_n(scores, (span + LANES - 1) / LANES * LANES, 0);
}

// Add a key to the buffer if it passes.
inline void State::collect(i64 score, i64 document, Collected& c) {
    i64 key = key_of(score, document);
    if (key <= c.threshold_key) return;
    b.keys[c.filled++] = key;
    cut_keys(c);
}

// Cut a full buffer to k, which raises the threshold.
inline void State::cut_keys(Collected& c) {
    if (c.filled < Buffers::key_buffer_size(c.k)) return;
    select_largest(b.keys.data(), c.filled, c.k, b.spare_keys.data());
    c.filled = c.k;
    i64 lowest = b.keys[0];
    for (i64 i = 0; i < c.k; i++) lowest = std::min(lowest, b.keys[i]);
    c.threshold_key = lowest;
}

// The maxima of groups of the block's scores, so many that several groups contain none of the best.
inline State::Groups State::group_scores(i64 span, i64 target) {
    i64 size = 1;
    while (size < 32 && span / (2 * size) >= 8 * target) size *= 2;
    return {size, group_maxima(b.accumulator.data(), span, size, b.maxima.data())};
}

// A score that `target` documents of the block exceed: the best of so many groups do, so the result
// is never too high.
inline i64 State::reached_by(Groups groups, i64 threshold, i64 bound, i64 target) {
    const i32* maxima = b.maxima.data();
    if (count_above(maxima, groups.count, threshold) < target) return threshold;
    i32 highest = 0;
    for (i64 i = 0; i < groups.count; i++) highest = std::max(highest, maxima[i]);
    return bisect(maxima, groups.count, threshold, std::min<i64>(bound, highest), target, false);
}

}  // namespace klsa::KLSA_NS
