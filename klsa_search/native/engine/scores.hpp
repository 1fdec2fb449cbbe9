// Scores of candidates: a first estimate for all, exact parts for the best, then the results.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr f32 EXCLUDED = -std::numeric_limits<f32>::max();  // excluded candidates score less
constexpr f32 MIN_SCORE = std::numeric_limits<f32>::min();  // of a result
constexpr f32 PROMISING = 0.5f;  // share of the k-th estimate below which T is not computed exactly

// Estimate the scores of all candidates; those of the seeds are exact.
inline void State::score_all(const Params& params, const Ranges& r, const Factors& f) {
    f32 *scores = b.scores.data(), *expanded = b.expanded.data(), *covered = b.covered.data();
    const i32* documents = b.documents.data();
    for (i64 slot = 1; slot <= r.size; slot++) scores[slot] = f.expansion * expanded[slot];
    if (params.coverage > 0) {
        score_alone(r.stride, r.seeds + 1, r.best + 1);
        for (i64 slot = 1; slot <= r.best; slot++) scores[slot] += f.coverage * covered[slot];
    }
    add_powers(b.lexical.data() + 1, r.matched, params.lexical_sharpness, f.lexical, scores + 1);
    if (params.latent > 0)
        for (i64 slot = 1; slot <= r.size; slot++) {
            fetch_vector(documents[std::min(slot + AHEAD, r.size)]);
            scores[slot] += f.latent * clip(f32(latent_score(documents[slot])), params);
        }
}

// Set the scores of candidates outside a mask to minus infinity.
inline void State::exclude_masked(const Mask& mask, i64 size) {
    if (mask.is_all()) return;
    for (i64 slot = 1; slot <= size; slot++)
        if (!mask.contains(b.documents[slot])) b.scores[slot] = -std::numeric_limits<f32>::infinity();
}

// A number that at least `target` of the scores exceed, and slightly more; negative if fewer are
// above 0. `bits` has room for whole vectors.
inline i64 State::score_threshold(i32* bits, i64 count, i64 target) {
    i64 span = (count + LANES - 1) / LANES * LANES;
    std::fill_n(bits + count, span - count, -1);
    i32 highest = 0;
    for (i64 i = 0; i < count; i++) highest = std::max(highest, bits[i]);
    if (count_above(bits, span, 0) < target) return -1;
    return find_threshold(bits, span, 0, highest, target);
}

// Choose the slots of the `target` highest scores, or of slightly more; return how many.
//
// All if fewer are above 0. Equal scores are chosen together or not at all.
inline i64 State::select_slots(i64 size, i64 target) {
    i32 *bits = score_bits() + 1, *chosen = b.chosen.data();  // positive floats have the order of their bits
    i64 threshold = size > target ? score_threshold(bits, size, target) : -1, count = size;
    if (threshold < 0)
        std::iota(chosen, chosen + size, 0);
    else
        count = indices_above(bits, size, i32(threshold), chosen);
    for (i64 i = 0; i < count; i++) chosen[i]++;
    return count;
}

// Choose likewise among the chosen slots.
inline i64 State::select_chosen(i64 count, i64 target) {
    if (count <= target) return count;
    i32* bits = b.bits.data();
    for (i64 i = 0; i < count; i++) bits[i] = score_bits()[b.chosen[i]];
    i64 threshold = score_threshold(bits, count, target), kept = 0;
    if (threshold < 0) return count;
    for (i64 i = 0; i < count; i++) {
        b.chosen[kept] = b.chosen[i];
        kept += bits[i] > threshold;
    }
    return kept;
}

// Keep the chosen slots that are not excluded; return how many.
inline i64 State::drop_excluded(i64 count) {
    i64 kept = 0;
    for (i64 i = 0; i < count; i++) {
        i32 slot = b.chosen[i];
        b.chosen[kept] = slot;
        kept += b.scores[slot] >= EXCLUDED;
    }
    return kept;
}

// The lowest of the `target` highest scores, or of slightly more; of all if fewer are above 0.
inline f32 State::lowest_of(i64 size, i64 target) {
    i32* bits = score_bits() + 1;
    i64 threshold = size > target ? score_threshold(bits, size, target) : -1;
    i32 least = threshold < 0 ? std::numeric_limits<i32>::min() : i32(threshold) + 1;
    f32 lowest = std::numeric_limits<f32>::infinity();
    for (i64 i = 0; i < size; i++) lowest = bits[i] >= least ? std::min(lowest, b.scores[i + 1]) : lowest;
    return lowest;
}

// Compute T of the chosen candidates from their neighbours; that of the seeds is exact already.
//
// Skips those that score far below the k-th: half of all, of which hardly any gets among the k best.
inline void State::rescore_coverage(const Ranges& r, i64 chosen, i64 depth, i64 k, const Factors& f) {
    f32 least = depth < r.size ? std::max(EXCLUDED, PROMISING * lowest_of(r.size, k)) : EXCLUDED;
    i64 others = 0;
    for (i64 i = 0; i < chosen; i++) {
        i32 slot = b.chosen[i];
        b.rescored[others] = slot;
        others += slot > r.seeds && b.scores[slot] >= least;
    }
    score_coverage(r.stride, r.best, b.rescored.data(), others, b.exact.data());
    for (i64 i = 0; i < others; i++) {
        i32 slot = b.rescored[i];
        b.scores[slot] += f.coverage * (b.exact[i] - (slot <= r.best ? b.covered[slot] : 0.f));
        b.covered[slot] = b.exact[i];
        b.is_exact[slot] |= COVERAGE_EXACT;
    }
}

// Compute E of the best of the chosen candidates from the features; that of the seeds is exact
// already. Returns how many they are, without excluded ones.
inline i64 State::rescore_expansion(const Params& params, i64 seeds, i64 chosen, i64 depth, const Factors& f,
                                    const Centre& centre) {
    i64 count = drop_excluded(select_chosen(chosen, depth));
    for (i64 i = 0; i < count; i++) prefetch(model_->feature_start(b.documents[b.chosen[i]]));
    for (i64 i = 0; i < std::min(AHEAD, count); i++) fetch_features(b.documents[b.chosen[i]]);
    for (i64 i = 0; i < count; i++) {
        if (i + AHEAD < count) fetch_features(b.documents[b.chosen[i + AHEAD]]);
        i32 slot = b.chosen[i];
        if (slot <= seeds) continue;
        f32 exact = clip(expansion_score(b.documents[slot], centre), params);
        b.scores[slot] += f.expansion * (exact - b.expanded[slot]);
        b.expanded[slot] = exact;
        b.is_exact[slot] |= EXPANSION_EXACT;
    }
    return count;
}

// Return the k best of the chosen slots, or of all if those do not suffice. Scores of results are
// at least `MIN_SCORE`. The lexical part of a document beyond `matched` is omitted from its score.
inline Hits State::write_results(i64 size, i64 matched, i64 chosen, i64 k) {
    if (chosen < std::min(k, size)) chosen = select_slots(size, k);
    i64* keys = b.result_keys.data();
    i64 count = 0;
    for (i64 i = 0; i < chosen; i++) {
        i32 slot = b.chosen[i];
        if (!(b.scores[slot] >= EXCLUDED)) continue;
        b.scores[slot] = std::max(b.scores[slot], MIN_SCORE);
        keys[count++] = key_of(score_bits()[slot], b.documents[slot]);
    }
    if (count > k) {
        select_largest(keys, count, k, b.sort_buffer.data());
        count = k;
    }
    sort_descending(keys, count, b.sort_buffer.data());
    Hits hits;
    hits.documents.resize(count);
    hits.scores.resize(count);
    hits.exact.resize(count);
    for (i64 i = 0; i < count; i++) {
        i32 document = hits.documents[i] = i32(document_of(keys[i])), slot = b.slots[document];
        hits.exact[i] = b.is_exact[slot] | (slot <= matched ? LEXICAL_EXACT : 0);
        i32 bits = i32(keys[i] >> 32);
        std::memcpy(&hits.scores[i], &bits, sizeof bits);
    }
    return hits;
}

}  // namespace klsa::KLSA_NS
